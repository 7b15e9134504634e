// Names of the asynchronous policies: their workers do not wait for each other in a step.
#pragma once

#include <string_view>

namespace drover {

inline constexpr std::string_view kAsyncPolicy = "async";
inline constexpr std::string_view kSspPolicy = "ssp";

// Whether `policy` is asynchronous. It may have options: "ssp:staleness=2".
constexpr bool is_asynchronous(std::string_view policy) {
  const std::string_view name = policy.substr(0, policy.find(':'));
  return name == kAsyncPolicy || name == kSspPolicy;
}

}  // namespace drover
