// The policies whose workers do not wait for a step together: their names, wherever a run says its
// policy.
#pragma once

#include <string_view>

namespace drover {

inline constexpr std::string_view kAsyncPolicy = "async";
inline constexpr std::string_view kSspPolicy = "ssp";

// Whether `policy`, with or without options ("ssp:staleness=2"), is one of them.
constexpr bool is_asynchronous(std::string_view policy) {
  const std::string_view name = policy.substr(0, policy.find(':'));
  return name == kAsyncPolicy || name == kSspPolicy;
}

}  // namespace drover
