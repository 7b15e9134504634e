// The worker process: computes gradients of a built-in task until the run is over.
#pragma once

#include "node/live_session.h"
#include "worker/task.h"

namespace drover {

// Trains until the run is over. Returns the process's exit status: 0 unless the run failed.
int run_worker(const WorkerSettings& settings, Task& task);

}  // namespace drover
