// StragglerRules: which workers may be told to stop, and what policies may be told of slow ones.
//
// With `probe`, or where all finish, a straggler may go on, to show how long it takes. It finishes
// until it asks for a later version; meanwhile it is not slow in other steps.
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

class StragglerRules {
 public:
  struct Settings {
    bool all_finish = false;     // none is told to stop
    double probe = 0.0;          // share of stragglers that finish all the same, drawn by ...
    uint64_t probe_seed = 1;     // ... this
    bool learned_early = false;  // policies learn of a step before all blocks have closed it
  };
  explicit StragglerRules(const Settings& settings) : settings_(settings) {}

  // A worker asks for this version.
  void on_pull(WorkerId worker, Version version);
  // It is lost by the coordinator.
  void on_lost(WorkerId worker);
  // The next step is decided.
  void on_decision() { gone_.clear(); }
  void restart();

  // Each of the following returns what is wrong; empty: nothing.
  std::string on_stop(Step step, WorkerId worker);
  // The policy is told this. `arrived`: whether all of a worker's blocks were answered in time.
  std::string on_learned(const StepTimes& times, const std::function<bool(WorkerId)>& arrived);
  std::string on_learned_late(Step step, WorkerId worker);
  std::string on_abandoned(const AbandonRecord& abandoned);

 private:
  bool may_finish(Step step, WorkerId worker) const;
  std::string check_known(const StepTimes& times, WorkerId worker, bool arrived) const;
  std::string on_slow(Step step, WorkerId worker);

  const Settings settings_;
  std::map<WorkerId, Version> asks_;             // the last version that each has asked for
  std::map<WorkerId, Step> finishing_;           // that each finishes
  std::set<std::pair<Step, WorkerId>> slow_;     // as the policy was told
  std::set<std::pair<Step, WorkerId>> stopped_;  // as told, until the worker has begun again
  std::set<WorkerId> gone_;                      // lost since the open step has opened
};

}  // namespace drover
