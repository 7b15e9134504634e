// Which drover this is.
#pragma once

#include <string_view>

namespace drover {

inline constexpr std::string_view kVersion = DROVER_VERSION;

}  // namespace drover
