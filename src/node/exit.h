// Ends a process after a short delay.
#pragma once

#include <memory>

#include "net/message_port.h"

namespace drover {

// Ends this process with `status` in a second, unless it has ended by itself before. A `port` is
// finished first: to MPI's launcher, a process that exits without that has failed.
void exit_soon(int status, std::shared_ptr<MessagePort> port = nullptr);

}  // namespace drover
