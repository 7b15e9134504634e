// The Referee's checks of the record of the run.
#include <fmt/format.h>

#include <algorithm>

#include "sim/referee.h"

namespace drover {

Status Referee::on_decision(const DecisionRecord& decision) {
  wrong(record_.on_decision(decision), TimePoint{});
  return done();
}

// Whether all blocks of its gradient were answered in time.
bool Referee::arrived(Step step, WorkerId worker) const {
  return std::all_of(books_.begin(), books_.end(), [&](const auto& entry) {
    const auto found = entry.second.accounts.find(step);
    return found != entry.second.accounts.end() && found->second.has(worker);
  });
}

bool Referee::refused(Step step, WorkerId worker) const {
  return std::any_of(books_.begin(), books_.end(), [&](const auto& entry) {
    const auto found = entry.second.accounts.find(step);
    return found != entry.second.accounts.end() && found->second.refused.contains(worker);
  });
}

void Referee::check_arrival(const StepRecord& step, const ArrivalRecord& arrival, TimePoint now) {
  const std::string subject = fmt::format("worker {} in step {}", arrival.worker, step.step);
  if (arrived(step.step, arrival.worker) == arrival.censored)
    wrong(fmt::format("{} is recorded as {}", subject, arrival.censored ? "censored" : "arrived"),
          now);
  if (!settings_.exact_times || members_.was_lost(arrival.worker)) return;
  if (!arrival.censored && arrival.run_time < arrival.compute)
    wrong(fmt::format("{} computed for {:.3f} s, but is recorded with {:.3f} s", subject,
                      seconds(arrival.compute), seconds(arrival.run_time)),
          now);
  if (arrival.run_time > step.elapsed)
    wrong(fmt::format("{} is recorded with {:.3f} s, longer than the step's {:.3f} s", subject,
                      seconds(arrival.run_time), seconds(step.elapsed)),
          now);
}

void Referee::on_learned(const StepTimes& times) {
  const auto in_time = [&](WorkerId worker) { return arrived(times.step, worker); };
  wrong(stragglers_.on_learned(times, in_time), TimePoint{});
}

void Referee::on_learned_late(Step step, WorkerId worker) {
  wrong(stragglers_.on_learned_late(step, worker), TimePoint{});
}

Status Referee::on_step(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) {
  const TimePoint now = step.at + step.elapsed;
  wrong(record_.on_step(step), now);
  if (step.elapsed > settings_.limits.step)
    wrong(fmt::format("step {} took {:.1f} s, more than {:.1f} s", step.step, seconds(step.elapsed),
                      seconds(settings_.limits.step)),
          now);
  if (settings_.asynchronous) return done();
  uint32_t contributors = 0;
  for (const ArrivalRecord& arrival : arrivals) {
    check_arrival(step, arrival, now);
    if (arrived(step.step, arrival.worker) && !refused(step.step, arrival.worker)) ++contributors;
  }
  if (contributors != step.contributors)
    wrong(fmt::format("step {} is recorded with {} contributors, but has {}", step.step,
                      step.contributors, contributors),
          now);
  wrong(record_.on_arrivals(step, arrivals), now);
  return done();
}

Status Referee::on_late_arrival(const ArrivalRecord& arrival) {
  wrong(record_.on_late_arrival(arrival), TimePoint{});
  return done();
}

Status Referee::on_abandoned(const AbandonRecord& abandoned) {
  wrong(stragglers_.on_abandoned(abandoned), TimePoint{});
  return done();
}

void Referee::on_run_over(const RunEnd& end) {
  if (end.outcome == RunOutcome::kInterrupted) return;
  const bool servers_are_gone = settings_.servers_die && end.outcome == RunOutcome::kFailed;
  if (!unanswered_.empty() && !servers_are_gone) {
    const auto& [block, step, worker] = *unanswered_.begin();
    wrong(fmt::format("worker {} offered block {} for step {}, but was never answered", worker,
                      block, static_cast<int64_t>(step)),
          end.elapsed);
  }
  wrong(checkpoints_.on_run_over(end), end.elapsed);
  if (end.outcome == RunOutcome::kCompleted) {
    if (record_.recorded() != settings_.steps && !settings_.may_leave)
      wrong(fmt::format("{} of {} steps were recorded", record_.recorded(), settings_.steps),
            end.elapsed);
    return;
  }
  const bool expected = end.cause == EndCause::kWorkersLost ||
                        (settings_.servers_die && !settings_.recovers) ||
                        (settings_.recovers && end.cause == EndCause::kJoinTimeout) ||
                        (saw_corrupt_gradient_ && end.cause == EndCause::kDiverged);
  if (!expected) wrong("the run failed: " + end.reason, end.elapsed);
}

}  // namespace drover
