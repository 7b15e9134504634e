// Ending a process that must not linger.
#pragma once

#include <memory>

#include "net/message_port.h"

namespace drover {

// Ends this process with `status` in a second, whatever it is doing then; it should be gone by
// itself before. A `port` is finished first: MPI's launcher takes whoever goes without for failed.
void exit_soon(int status, std::shared_ptr<MessagePort> port = nullptr);

}  // namespace drover
