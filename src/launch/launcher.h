// Launcher: starts a run on this machine, a process for each role, and makes sure that all of them
// end.
//
// All processes are forked from the caller. If it has loaded a task, and with it libtorch and the
// data, the children share that memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/run_record.h"
#include "job/job.h"
#include "policy/catalogue.h"
#include "store/run_header.h"
#include "worker/task.h"

namespace drover {

// Shows a run while it is under way, in the coordinator's process.
class RunView : public RunObserver {
 public:
  // Called a few times a second.
  virtual void tick() = 0;
};

// Objects beside the coordinator in its process. They are made there.
struct Company {
  std::function<std::unique_ptr<RunView>()> view;
  FitterMaker fitter;  // empty: no model can be fitted
};

struct EvaluatorSettings;
struct Part;
struct WorkerSettings;

// The bodies of the processes that compute.
struct WorkerFactory {
  // The body of a worker's process, which returns its exit status. Empty: workers are started
  // elsewhere.
  std::function<int(const WorkerSettings&)> worker;
  std::function<int(const EvaluatorSettings&)> evaluator;  // the same; empty: there is none
  bool brings_model = false;  // the model and the optimiser come from the workers
  // Workers may continue after the run is over, for example to save the model.
  bool may_stay = false;
  // More workers' processes that fail than these make the launch fail; absent: the run's outcome
  // alone counts.
  std::optional<uint32_t> failures_allowed = {};
};

// A factory for a built-in task. REQUIRES: `task` outlives it.
WorkerFactory worker_factory_for(Task& task);

// What a process needs to join a run.
struct Invitation {
  std::string address;  // of the coordinator
  std::string token;    // to_text(RunKey)
};

inline constexpr int kExitFailed = 1;
inline constexpr int kExitInterrupted = 130;

// Runs `job` to its end and returns the exit status: 0, kExitFailed or kExitInterrupted. The run is
// recorded in job.record.run_file. `invite` is called when the coordinator listens, before other
// processes are started; its error ends the run. REQUIRES: no thread has been started in this
// process; job.record.run_file is set.
int launch(const Job& job, const WorkerFactory& factory, const RunHeader& header,
           const Company& company,
           const std::function<Status(const Invitation&)>& invite = nullptr);

// The same for a part of a run (launch/cluster_part.h). A part without the coordinator records and
// shows nothing, and the status is that of its first worker, or else of its first shard.
int launch_part(Part part, const Job& job, const WorkerFactory& factory, const RunHeader& header,
                const Company& company,
                const std::function<Status(const Invitation&)>& invite = nullptr);

}  // namespace drover
