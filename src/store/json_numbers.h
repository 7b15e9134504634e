// Strict reading of whole numbers from JSON. nlohmann's get() converts numbers with a fraction, or
// that are too large, to arbitrary values.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace drover {

// Throws a json::exception if it is not an unsigned whole number of at most 64 bits.
inline uint64_t whole(const nlohmann::json& value) {
  return value.get_ref<const nlohmann::json::number_unsigned_t&>();
}

inline std::vector<uint64_t> wholes(const nlohmann::json& values) {
  std::vector<uint64_t> all;
  for (const nlohmann::json& each : values) all.push_back(whole(each));
  return all;
}

// The message of an exception without its prefix "[json.exception.type_error.302] ".
inline std::string trouble_in(const nlohmann::json::exception& trouble) {
  const std::string words = trouble.what();
  const size_t end = words.starts_with('[') ? words.find("] ") : std::string::npos;
  return end == std::string::npos ? words : words.substr(end + 2);
}

}  // namespace drover
