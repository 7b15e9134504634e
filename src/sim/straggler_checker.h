// StragglerChecker: checks which workers are stopped, and what policies learn of stragglers. With
// `probe`, or where all finish, a straggler may finish its gradient to show its run-time. It does
// so until it asks for a later version; meanwhile it does not count as a straggler of other steps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/ids.h"
#include "core/run_record.h"
#include "core/step_times.h"

namespace drover {

class StragglerChecker {
 public:
  struct Settings {
    bool all_finish = false;     // no worker is stopped
    double probe = 0.0;          // share of stragglers that finish
    uint64_t probe_seed = 1;     // seed of their choice
    bool learned_early = false;  // policies learn of a step before all blocks have closed it
  };
  explicit StragglerChecker(const Settings& settings) : settings_(settings) {}

  // A worker asks for this version.
  void on_pull(WorkerId worker, Version version);
  // The coordinator has lost the worker.
  void on_lost(WorkerId worker);
  // The next step is decided.
  void on_decision() { gone_.clear(); }
  void restart();

  // Each of the following returns a description of the violation, or an empty string.
  std::string on_stop(Step step, WorkerId worker);
  // The policy learns this. `arrived`: whether all blocks of a worker were answered in time.
  std::string on_learned(const StepTimes& times, const std::function<bool(WorkerId)>& arrived);
  std::string on_learned_late(Step step, WorkerId worker);
  std::string on_abandoned(const AbandonRecord& abandoned);

 private:
  bool may_finish(Step step, WorkerId worker) const;
  std::string check_known(const StepTimes& times, WorkerId worker, bool arrived) const;
  std::string on_slow(Step step, WorkerId worker);

  const Settings settings_;
  std::map<WorkerId, Version> asks_;             // the last version that each has asked for
  std::map<WorkerId, Step> finishing_;           // the step that each finishes
  std::set<std::pair<Step, WorkerId>> slow_;     // as the policy has learned
  std::set<std::pair<Step, WorkerId>> stopped_;  // until the worker has begun another step
  std::set<WorkerId> gone_;                      // lost since the open step was opened
};

}  // namespace drover
