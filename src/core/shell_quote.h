// A text as a shell takes it, for commands that are shown to be copied.
#pragma once

#include <string>

namespace drover {

// In single quotes if `text` has anything but letters, digits and / . - _
std::string shell_quoted(const std::string& text);

}  // namespace drover
