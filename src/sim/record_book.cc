#include "sim/record_book.h"

#include <fmt/format.h>

namespace drover {

void RecordBook::restart(Version version) {
  alive_.erase(alive_.lower_bound(version), alive_.end());
  censored_.clear();
  recorded_ = decided_ = version;
}

// Once each; and, inside the step that was decided last, again.
std::string RecordBook::on_decision(const DecisionRecord& decision) {
  const bool again = decision.at > Duration::zero();
  const bool in_turn = decision.step + (again ? 1 : 0) == decided_;
  if (!again) {
    ++decided_;
    alive_[decision.step] = decision.alive;  // as it began
  }
  if (!in_turn) return "steps are decided out of turn";
  if (decision.cutoff < 1 || decision.cutoff > decision.alive)
    return fmt::format("step {} waits for {} of {} workers", decision.step, decision.cutoff,
                       decision.alive);
  return decision.reason.empty() ? "a decision has no reason" : "";
}

std::string RecordBook::on_step(const StepRecord& step) {
  if (step.step == recorded_++) return {};
  return fmt::format("step {} is told out of turn", step.step);
}

std::string RecordBook::on_arrivals(const StepRecord& step,
                                    const std::vector<ArrivalRecord>& arrivals) {
  for (const ArrivalRecord& arrival : arrivals) {
    if (arrival.censored) censored_[step.step].emplace(arrival.worker, arrival.run_time);
  }
  if (arrivals.size() == alive_[step.step]) return {};
  return fmt::format("step {} began with {} workers, but tells of {}", step.step, alive_[step.step],
                     arrivals.size());
}

// A late run-time is for a worker that was recorded as cut short, and comes once.
std::string RecordBook::on_late_arrival(const ArrivalRecord& arrival) {
  const auto step = censored_.find(arrival.step);
  if (step == censored_.end()) return {};
  const auto found = step->second.find(arrival.worker);
  if (found == step->second.end())
    return fmt::format("worker {}'s run-time in step {} became known twice", arrival.worker,
                       arrival.step);
  const Duration bound = found->second;
  step->second.erase(found);
  if (arrival.run_time >= bound) return {};
  return fmt::format("worker {} took more than {:.3f} s in step {}, then {:.3f} s", arrival.worker,
                     seconds(bound), arrival.step, seconds(arrival.run_time));
}

}  // namespace drover
