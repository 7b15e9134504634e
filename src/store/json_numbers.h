// Whole numbers of JSON, and what is said of what is none. What nlohmann's get() makes of others,
// with a fraction or too large, need not be a number at all.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace drover {

// Throws a json::exception if it is no whole number of at most 64 bits, from zero on.
inline uint64_t whole(const nlohmann::json& value) {
  return value.get_ref<const nlohmann::json::number_unsigned_t&>();
}

inline std::vector<uint64_t> wholes(const nlohmann::json& values) {
  std::vector<uint64_t> all;
  for (const nlohmann::json& each : values) all.push_back(whole(each));
  return all;
}

// For people: without the name that the library has for it, "[json.exception.type_error.302] ".
inline std::string trouble_in(const nlohmann::json::exception& trouble) {
  const std::string words = trouble.what();
  const size_t end = words.starts_with('[') ? words.find("] ") : std::string::npos;
  return end == std::string::npos ? words : words.substr(end + 2);
}

}  // namespace drover
