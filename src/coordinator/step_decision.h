// StepDecision: how long the open step waits and for how many gradients, and when that decision is
// to be reviewed before the step closes.
//
// A synchronous run decides with a policy within limits (Decider). An asynchronous run has no
// policy: a step is a round of as many gradients as there are workers.
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
  // REQUIRES: `policy` is null if and only if the run is asynchronous.
  StepDecision(const CoordinatorSettings& settings, std::unique_ptr<Policy> policy);

  bool has_policy() const { return decider_.has_value(); }

  // A step opens. `available`: members that are not busy with an earlier gradient (not empty);
  // `shards`: the number of shards that report arrivals; `noise_scale`: in samples, 0 if unknown.
  struct Opening {
    Step step = 0;
    std::vector<WorkerId> available = {};
    uint32_t shards = 0;
    double noise_scale = 0.0;
    TimePoint now{};
  };
  DecisionRecord open(const Opening& opening, const Membership& members);

  // A shard, which opened the step `lead` earlier than the last shard, reports arrivals in it.
  // Returns whether review() is due.
  bool on_arrived(ShardId shard, const Arrived& arrived, Duration lead);
  // When review() is due at the latest, if ever.
  std::optional<TimePoint> review_at() const;
  // Reviews the decision. Returns its record if the decision has changed and has to be sent.
  std::optional<DecisionRecord> review(Step step, const Membership& members, TimePoint now);

  // The decision for shards. It never waits for more workers than are left. The caller sets the
  // step, time limit and noise scale.
  Decision order(const Membership& members) const;
  // Counted from the step's opening; zero: no limit.
  Duration time_limit() const;

  // The number of samples of `step` that each member computes; empty if all compute equally many.
  std::vector<uint32_t> deal(Step step, std::span<const WorkerId> members);

  // See Policy. No effect without a policy.
  void learn(const StepTimes& times);
  void learn_late(Step step, WorkerId worker, Duration run_time);

 private:
  Choice asynchronous_choice(uint32_t members) const;
  uint32_t expected(const Membership& members) const;
  DecisionRecord record(Step step, uint32_t cutoff, const Membership& members) const;

  const std::optional<Asynchronous> asynchronous_;
  const uint32_t batch_;
  std::optional<Decider> decider_;
  Choice choice_;                   // for the open step
  std::vector<WorkerId> expected_;  // the available workers when it opened
  TimePoint opened_{};
  LiveArrivals arrivals_;  // tracked only if the choice asks for a review
};

}  // namespace drover
