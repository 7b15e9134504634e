// Whole numbers of JSON. What nlohmann's get() makes of others, with a fraction or too large, need
// not be a number at all.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
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

}  // namespace drover
