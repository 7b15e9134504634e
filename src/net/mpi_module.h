// Loads libdrover_mpi.so, which needs the MPI library, and initialises MPI.
#pragma once

#include <memory>

#include "core/program_module.h"
#include "core/result.h"
#include "net/message_port.h"

namespace drover {

// Whether the module can be loaded. Does not initialise MPI.
Status check_mpi_module();

// Initialises MPI, which waits until all processes of the launch have called this.
// REQUIRES: an MPI launcher started this process or its parent; it is called once, and the process
// does not fork afterwards.
Result<std::shared_ptr<MessagePort>> open_mpi_port();

}  // namespace drover
