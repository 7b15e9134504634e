#include "sim/straggler_checker.h"

#include <fmt/format.h>

#include "coordinator/step_ledger.h"
#include "core/random_draw.h"

namespace drover {

void StragglerChecker::on_pull(WorkerId worker, Version version) {
  asks_[worker] = version;
  const auto finishes = finishing_.find(worker);
  if (finishes != finishing_.end() && finishes->second < version) finishing_.erase(finishes);
}

void StragglerChecker::on_lost(WorkerId worker) {
  gone_.insert(worker);
  finishing_.erase(worker);
}

void StragglerChecker::restart() {
  asks_.clear();
  finishing_.clear();
  slow_.clear();
  stopped_.clear();
  gone_.clear();
}

bool StragglerChecker::may_finish(Step step, WorkerId worker) const {
  if (settings_.all_finish) return true;
  const uint64_t key =
      draw({settings_.probe_seed, static_cast<uint64_t>(Purpose::kProbes), step, worker});
  return unit_interval(key) < settings_.probe;
}

// A stop is a watermark: it ends any gradient of this step or an earlier one.
std::string StragglerChecker::on_stop(Step step, WorkerId worker) {
  stopped_.insert({step, worker});
  if (may_finish(step, worker))
    return fmt::format("worker {} is stopped in step {}, which it may finish", worker, step);
  const auto finishes = finishing_.find(worker);
  if (finishes == finishing_.end() || step > finishes->second + StepLedger::kStepsRemembered)
    return {};
  return fmt::format(
      "worker {} is stopped in step {}, while it finishes step {} to show its run-time", worker,
      step, finishes->second);
}

std::string StragglerChecker::on_learned(const StepTimes& times,
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

// A worker that was lost does not count as slow: nothing is known of it.
std::string StragglerChecker::check_known(const StepTimes& times, WorkerId worker,
                                          bool arrived) const {
  const Known known = times.known[worker];
  if (!settings_.learned_early &&
      ((known == Known::kArrived && !arrived) || (known == Known::kLonger && arrived)))
    return fmt::format("the policy learns that worker {} {} in step {}", worker,
                       arrived ? "was cut" : "arrived", times.step);
  if (known == Known::kLonger && gone_.contains(worker))
    return fmt::format("the policy learns that worker {} was slow in step {}, but it was lost",
                       worker, times.step);
  return {};
}

// A worker that still finishes an earlier gradient does not count as slow either.
std::string StragglerChecker::on_slow(Step step, WorkerId worker) {
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
      "the policy learns that worker {} was slow in step {}, but it finishes step {}", worker, step,
      finishes->second);
}

std::string StragglerChecker::on_learned_late(Step step, WorkerId worker) {
  if (slow_.erase({step, worker}) > 0) return {};
  return fmt::format(
      "the policy learns how late worker {} was in step {}, but not that it was late", worker,
      step);
}

std::string StragglerChecker::on_abandoned(const AbandonRecord& abandoned) {
  if (stopped_.erase({abandoned.step, abandoned.worker}) == 0)
    return fmt::format("worker {} is recorded to have abandoned step {}, but was not stopped",
                       abandoned.worker, abandoned.step);
  if (abandoned.resumed <= abandoned.step)
    return fmt::format("worker {} abandoned step {} and went back to step {}", abandoned.worker,
                       abandoned.step, abandoned.resumed);
  return {};
}

}  // namespace drover
