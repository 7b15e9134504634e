// Loads libdrover_mpi.so, which brings the MPI library with it, and begins to speak MPI.
#pragma once

#include <memory>

#include "core/program_module.h"
#include "core/result.h"
#include "net/message_port.h"

namespace drover {

// Says whether there is such a module, without MPI having begun.
Status check_mpi_module();

// MPI begins in this process, and waits until all that were launched together have come to this.
// REQUIRES: this process was started by an MPI launcher, or forked by one that was; it does this
// once, and forks nobody afterwards.
Result<std::shared_ptr<MessagePort>> open_mpi_port();

}  // namespace drover
