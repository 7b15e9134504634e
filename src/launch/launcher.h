// Launcher: starts a whole run on this machine, a process for each part, and sees that all of them
// end.
//
// All processes are forked from the caller. Where it has loaded a task (and with it libtorch and
// the data) the children share that memory instead of each loading its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/run_record.h"
#include "job/job.h"
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

struct EvaluatorSettings;
struct Part;
struct WorkerSettings;

// Who computes.
struct WorkerFactory {
  // The body of a worker's process, which returns its exit status. Empty: workers come by
  // themselves.
  std::function<int(const WorkerSettings&)> worker;
  std::function<int(const EvaluatorSettings&)> evaluator;  // the same; empty: there is none
  bool brings_model = false;  // workers say what the model is and how to learn it
  // Workers may have something left to do when the run is over, such as to save the model.
  bool may_stay = false;
};

// A factory that computes a built-in task, which must outlive it.
WorkerFactory worker_factory_for(Task& task);

// What somebody needs to join a run.
struct Invitation {
  std::string address;  // of the coordinator
  std::string token;    // to_text(RunKey)
};

inline constexpr int kExitFailed = 1;
inline constexpr int kExitInterrupted = 130;

// Runs `job` to its end and returns the exit status: 0, kExitFailed or kExitInterrupted. The run is
// recorded in job.run_file. `invite` is told where to join before anybody is waited for; an error
// ends the run. REQUIRES: no thread has been started in this process; job.run_file is set.
int launch(const Job& job, const WorkerFactory& factory, const RunHeader& header,
           const Company& company,
           const std::function<Status(const Invitation&)>& invite = nullptr);

// The same for a part of it (launch/cluster_part.h). Without the coordinator nothing is recorded or
// shown, and the status is that of the part's worker, or of its shard.
int launch_part(Part part, const Job& job, const WorkerFactory& factory, const RunHeader& header,
                const Company& company,
                const std::function<Status(const Invitation&)>& invite = nullptr);

}  // namespace drover
