// StepDecision: how long the open step waits and for how many gradients, and whether that is to be
// decided again before the step closes.
//
// It has a policy within limits (Decider); in asynchronous runs it has none, and a step is a round
// of as many gradients as there are workers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "coordinator/coordinator_settings.h"
#include "coordinator/live_arrivals.h"
#include "core/ids.h"
#include "core/membership.h"
#include "core/run_record.h"
#include "core/step_times.h"
#include "core/time.h"
#include "policy/decider.h"
#include "wire/control.h"

namespace drover {

class StepDecision {
 public:
  // REQUIRES: there is a policy if and only if the settings are not `free_running`.
  StepDecision(const CoordinatorSettings& settings, std::unique_ptr<Policy> policy);

  bool has_policy() const { return decider_.has_value(); }

  // A step opens. `available`: members that are not busy with an earlier gradient (not empty);
  // `shards`: how many report arrivals; `noise_scale`: in samples, 0 if it is not known.
  struct Opening {
    Step step = 0;
    std::vector<WorkerId> available = {};
    uint32_t shards = 0;
    double noise_scale = 0.0;
    TimePoint now{};
  };
  DecisionRecord open(const Opening& opening, const Membership& members);

  // News of arrivals in the open step, of a shard that opened it `lead` earlier than the last.
  // Returns whether review() is due.
  bool on_arrived(ShardId shard, const Arrived& arrived, Duration lead);
  // When review() is due at the latest, if ever.
  std::optional<TimePoint> review_at() const;
  // Decides again. Returns the record of it if the shards have to be told.
  std::optional<DecisionRecord> review(Step step, const Membership& members, TimePoint now);

  // The decision as shards are told it, which never waits for more workers than are left. Its step,
  // time limit and noise scale are the caller's to set.
  Decision order(const Membership& members) const;
  // Since the step's opening; zero: none.
  Duration time_limit() const;

  // How many samples of `step` each of the members computes; empty if all have as many.
  std::vector<uint32_t> deal(Step step, std::span<const WorkerId> members);

  // See Policy. Nothing is learned without one.
  void learn(const StepTimes& times);
  void learn_late(Step step, WorkerId worker, Duration run_time);

 private:
  Choice free_choice(uint32_t members) const;
  uint32_t expected(const Membership& members) const;
  DecisionRecord record(Step step, uint32_t cutoff, const Membership& members) const;

  const std::optional<FreeRunning> free_running_;
  const uint32_t batch_;
  std::optional<Decider> decider_;
  Choice choice_;                     // for the open step
  std::vector<WorkerId> counted_on_;  // when it opened
  TimePoint opened_{};
  LiveArrivals arrivals_;  // where the choice wants to be reviewed
};

}  // namespace drover
