// The version of this program.
#pragma once

#include <string_view>

namespace drover {

inline constexpr std::string_view kVersion = DROVER_VERSION;

}  // namespace drover
