// Messages of a process to the person who started the run: one line each on standard error, under
// the process's name.
#pragma once

#include <string>

namespace drover {

// From now on this process's messages read "drover NAME: ...".
void set_log_name(const std::string& name);

}  // namespace drover
