#include "sim/record_checker.h"

#include <fmt/format.h>

namespace drover {

void RecordChecker::restart(Version version) {
  alive_.erase(alive_.lower_bound(version), alive_.end());
  censored_.clear();
  recorded_ = decided_ = version;
}

// Each step is decided once. Only the decision of the last step may be revised, within the step.
std::string RecordChecker::on_decision(const DecisionRecord& decision) {
  const bool revised = decision.at > Duration::zero();
  const bool in_turn = decision.step + (revised ? 1 : 0) == decided_;
  if (!revised) {
    ++decided_;
    alive_[decision.step] = decision.alive;  // at the beginning of the step
  }
  if (!in_turn) return "steps are decided out of order";
  if (decision.cutoff < 1 || decision.cutoff > decision.alive)
    return fmt::format("step {} waits for {} of {} workers", decision.step, decision.cutoff,
                       decision.alive);
  return decision.reason.empty() ? "a decision has no reason" : "";
}

std::string RecordChecker::on_step(const StepRecord& step) {
  if (step.step == recorded_++) return {};
  return fmt::format("step {} is recorded out of order", step.step);
}

std::string RecordChecker::on_arrivals(const StepRecord& step,
                                       const std::vector<ArrivalRecord>& arrivals) {
  for (const ArrivalRecord& arrival : arrivals) {
    if (arrival.censored) censored_[step.step].emplace(arrival.worker, arrival.run_time);
  }
  if (arrivals.size() == alive_[step.step]) return {};
  return fmt::format("step {} began with {} workers, but {} are recorded", step.step,
                     alive_[step.step], arrivals.size());
}

// A late run-time belongs to a worker that was recorded as censored, and is recorded once.
std::string RecordChecker::on_late_arrival(const ArrivalRecord& arrival) {
  const auto step = censored_.find(arrival.step);
  if (step == censored_.end()) return {};
  const auto found = step->second.find(arrival.worker);
  if (found == step->second.end())
    return fmt::format("worker {}'s run-time in step {} is recorded twice", arrival.worker,
                       arrival.step);
  const Duration bound = found->second;
  step->second.erase(found);
  if (arrival.run_time >= bound) return {};
  return fmt::format(
      "worker {} took more than {:.3f} s in step {}, but is then recorded with {:.3f} s",
      arrival.worker, seconds(bound), arrival.step, seconds(arrival.run_time));
}

}  // namespace drover
