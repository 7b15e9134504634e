#include "sim/straggler_rules.h"

#include <fmt/format.h>

#include "coordinator/step_ledger.h"
#include "core/random_draw.h"

namespace drover {

void StragglerRules::on_pull(WorkerId worker, Version version) {
  asks_[worker] = version;
  const auto finishes = finishing_.find(worker);
  if (finishes != finishing_.end() && finishes->second < version) finishing_.erase(finishes);
}

void StragglerRules::on_lost(WorkerId worker) {
  gone_.insert(worker);
  finishing_.erase(worker);
}

void StragglerRules::restart() {
  asks_.clear();
  finishing_.clear();
  slow_.clear();
  stopped_.clear();
  gone_.clear();
}

bool StragglerRules::may_finish(Step step, WorkerId worker) const {
  if (settings_.all_finish) return true;
  const uint64_t key =
      draw({settings_.probe_seed, static_cast<uint64_t>(Purpose::kProbes), step, worker});
  return unit_interval(key) < settings_.probe;
}

// The order is a watermark: it ends whatever the worker is at.
std::string StragglerRules::on_stop(Step step, WorkerId worker) {
  stopped_.insert({step, worker});
  if (may_finish(step, worker))
    return fmt::format("worker {} is told to stop with step {}, which it may finish", worker, step);
  const auto finishes = finishing_.find(worker);
  if (finishes == finishing_.end() || step > finishes->second + StepLedger::kStepsRemembered)
    return {};
  return fmt::format(
      "worker {} is told to stop with step {}, while it finishes step {} to show how long it takes",
      worker, step, finishes->second);
}

std::string StragglerRules::on_learned(const StepTimes& times,
                                       const std::function<bool(WorkerId)>& arrived) {
  std::string wrong;
  for (WorkerId worker = 0; worker < times.known.size(); ++worker) {
    if (wrong.empty()) wrong = check_known(times, worker, arrived(worker));
    if (times.known[worker] != Known::kLonger) continue;
    const std::string slow = on_slow(times.step, worker);
    if (wrong.empty()) wrong = slow;
  }
  gone_.clear();
  return wrong;
}

// One that was lost was not slow: nothing is known of it.
std::string StragglerRules::check_known(const StepTimes& times, WorkerId worker,
                                        bool arrived) const {
  const Known known = times.known[worker];
  if (!settings_.learned_early &&
      ((known == Known::kArrived && !arrived) || (known == Known::kLonger && arrived)))
    return fmt::format("the policy is told that worker {} {} in step {}", worker,
                       arrived ? "was cut short" : "arrived", times.step);
  if (known == Known::kLonger && gone_.contains(worker))
    return fmt::format("the policy is told that worker {} was slow in step {}, but it was lost",
                       worker, times.step);
  return {};
}

// Nor was one that still finishes an earlier gradient on our behalf.
std::string StragglerRules::on_slow(Step step, WorkerId worker) {
  slow_.insert({step, worker});
  const auto finishes = finishing_.find(worker);
  if (finishes == finishing_.end()) {
    if (may_finish(step, worker) && asks_[worker] <= step) finishing_[worker] = step;
    return {};
  }
  if (step > finishes->second + StepLedger::kStepsRemembered) {
    finishing_.erase(finishes);
    return {};
  }
  return fmt::format(
      "the policy is told that worker {} was slow in step {}, but it finishes step {}", worker,
      step, finishes->second);
}

std::string StragglerRules::on_learned_late(Step step, WorkerId worker) {
  if (slow_.erase({step, worker}) > 0) return {};
  return fmt::format("the policy is told how late worker {} was in step {}, but not that it was",
                     worker, step);
}

std::string StragglerRules::on_abandoned(const AbandonRecord& abandoned) {
  if (stopped_.erase({abandoned.step, abandoned.worker}) == 0)
    return fmt::format("worker {} is recorded to have left off step {}, but was not told to",
                       abandoned.worker, abandoned.step);
  if (abandoned.resumed <= abandoned.step)
    return fmt::format("worker {} left off step {} and went back to {}", abandoned.worker,
                       abandoned.step, abandoned.resumed);
  return {};
}

}  // namespace drover
