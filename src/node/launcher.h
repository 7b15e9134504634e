// Launcher: starts a whole run on this machine, a process for each part, and sees that all of them
// end.
//
// All processes are forked from the caller, which has loaded the task (and with it libtorch and the
// data) and has no thread yet: the children share that memory instead of each loading its own.
#pragma once

#include <functional>
#include <memory>

#include "core/run_record.h"
#include "node/job.h"
#include "policy/catalogue.h"
#include "store/run_header.h"
#include "worker/task.h"

namespace drover {

// Shows a run while it goes; lives in the coordinator's process.
class RunView : public RunObserver {
 public:
  // Called a few times a second.
  virtual void tick() = 0;
};

// What lives in the coordinator's process beside the coordinator, and is made there.
struct Company {
  std::function<std::unique_ptr<RunView>()> view;
  FitterMaker fitter;  // empty: no model can be fitted
};

inline constexpr int kExitFailed = 1;
inline constexpr int kExitInterrupted = 130;

// Runs `job` to its end and returns the exit status: 0, kExitFailed or kExitInterrupted. The run is
// recorded in job.run_file. REQUIRES: no thread has been started in this process; job.run_file is
// set.
int launch(const Job& job, Task& task, const RunHeader& header, const Company& company);

}  // namespace drover
