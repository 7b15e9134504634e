// Log messages of a process: one line each on standard error, with the process's name.
#pragma once

#include <string>

namespace drover {

// From now on this process's messages read "drover NAME: ...".
void set_log_name(const std::string& name);

}  // namespace drover
