// What the Referee checks of what is recorded.
#include <fmt/format.h>

#include <algorithm>

#include "coordinator/step_ledger.h"
#include "sim/referee.h"

namespace drover {

Status Referee::on_decision(const DecisionRecord& decision) {
  // Once each; and, inside the step that was decided last, again.
  const bool again = decision.at > Duration::zero();
  if (decision.step + (again ? 1 : 0) != decided_)
    wrong("steps are decided out of turn", TimePoint{});
  if (!again) ++decided_;
  if (decision.cutoff < 1 || decision.cutoff > decision.alive)
    wrong(fmt::format("step {} waits for {} of {} workers", decision.step, decision.cutoff,
                      decision.alive),
          TimePoint{});
  if (decision.reason.empty()) wrong("a decision has no reason", TimePoint{});
  if (!again) alive_[decision.step] = decision.alive;  // as it began
  return done();
}

// All its blocks were answered in time.
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
  const std::string who = fmt::format("worker {} in step {}", arrival.worker, step.step);
  if (arrived(step.step, arrival.worker) == arrival.censored)
    wrong(fmt::format("{} is recorded as {}", who, arrival.censored ? "cut short" : "arrived"),
          now);
  if (!settings_.exact_times || attendance_.was_lost(arrival.worker)) return;
  if (!arrival.censored && arrival.run_time < arrival.compute)
    wrong(fmt::format("{} computed for {:.3f} s, but is recorded with {:.3f} s", who,
                      seconds(arrival.compute), seconds(arrival.run_time)),
          now);
  if (arrival.run_time > step.elapsed)
    wrong(fmt::format("{} is recorded with {:.3f} s, longer than the step's {:.3f} s", who,
                      seconds(arrival.run_time), seconds(step.elapsed)),
          now);
}

// Who was lost was not slow, nor is who still finishes an earlier gradient on our behalf: nothing
// is known of it.
void Referee::on_learned(const StepTimes& times) {
  for (WorkerId worker = 0; worker < times.known.size(); ++worker) {
    const Known known = times.known[worker];
    const bool in = arrived(times.step, worker);
    // Where some blocks are not waited for, the policy learns before all have closed.
    if (!settings_.blocks_needed &&
        ((known == Known::kArrived && !in) || (known == Known::kLonger && in)))
      wrong(fmt::format("the policy is told that worker {} {} in step {}", worker,
                        in ? "was cut short" : "arrived", times.step),
            TimePoint{});
    if (known == Known::kLonger && gone_.contains(worker))
      wrong(fmt::format("the policy is told that worker {} was slow in step {}, but it was lost",
                        worker, times.step),
            TimePoint{});
    if (known != Known::kLonger) continue;
    slow_.insert({times.step, worker});
    const auto finishes = finishing_.find(worker);
    if (finishes == finishing_.end()) {
      if (may_finish(times.step, worker) && asks_[worker] <= times.step)
        finishing_[worker] = times.step;
    } else if (times.step > finishes->second + StepLedger::kStepsRemembered) {
      finishing_.erase(finishes);
    } else {
      wrong(fmt::format("the policy is told that worker {} was slow in step {}, but it finishes "
                        "step {}",
                        worker, times.step, finishes->second),
            TimePoint{});
    }
  }
  gone_.clear();
}

void Referee::on_learned_late(Step step, WorkerId worker) {
  if (slow_.erase({step, worker}) == 0)
    wrong(fmt::format("the policy is told how late worker {} was in step {}, but not that it was",
                      worker, step),
          TimePoint{});
}

Status Referee::on_step(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) {
  const TimePoint now = step.at + step.elapsed;
  if (step.step != told_++) wrong(fmt::format("step {} is told out of turn", step.step), now);
  if (step.elapsed > settings_.step_limit)
    wrong(fmt::format("step {} took {:.1f} s, more than {:.1f} s", step.step, seconds(step.elapsed),
                      seconds(settings_.step_limit)),
          now);
  if (settings_.free_running) return done();
  uint32_t contributors = 0;
  for (const ArrivalRecord& arrival : arrivals) {
    if (arrival.censored) censored_[step.step].emplace(arrival.worker, arrival.run_time);
    check_arrival(step, arrival, now);
    if (arrived(step.step, arrival.worker) && !refused(step.step, arrival.worker)) ++contributors;
  }
  if (contributors != step.contributors)
    wrong(fmt::format("step {} is recorded with {} contributors, but has {}", step.step,
                      step.contributors, contributors),
          now);
  if (arrivals.size() != alive_[step.step])
    wrong(fmt::format("step {} began with {} workers, but tells of {}", step.step,
                      alive_[step.step], arrivals.size()),
          now);
  return done();
}

Status Referee::on_late_arrival(const ArrivalRecord& arrival) {
  // A late truth is for somebody who was recorded as cut short, and comes once.
  const auto step = censored_.find(arrival.step);
  if (step == censored_.end()) return done();
  const auto bound = step->second.find(arrival.worker);
  if (bound == step->second.end()) {
    wrong(fmt::format("worker {}'s run-time in step {} became known twice", arrival.worker,
                      arrival.step),
          TimePoint{});
    return done();
  }
  if (arrival.run_time < bound->second)
    wrong(fmt::format("worker {} took more than {:.3f} s in step {}, then {:.3f} s", arrival.worker,
                      seconds(bound->second), arrival.step, seconds(arrival.run_time)),
          TimePoint{});
  step->second.erase(bound);
  return done();
}

Status Referee::on_abandoned(const AbandonRecord& abandoned) {
  if (stopped_.erase({abandoned.step, abandoned.worker}) == 0)
    wrong(fmt::format("worker {} is recorded to have left off step {}, but was not told to",
                      abandoned.worker, abandoned.step),
          TimePoint{});
  if (abandoned.resumed <= abandoned.step)
    wrong(fmt::format("worker {} left off step {} and went back to {}", abandoned.worker,
                      abandoned.step, abandoned.resumed),
          TimePoint{});
  return done();
}

void Referee::on_run_over(const RunEnd& end) {
  if (end.outcome == RunOutcome::kInterrupted) return;
  const bool servers_are_gone = settings_.servers_die && end.outcome == RunOutcome::kFailed;
  if (!unanswered_.empty() && !servers_are_gone) {
    const auto& [block, step, worker] = *unanswered_.begin();
    wrong(fmt::format("worker {} offered block {} for step {} and was never answered", worker,
                      block, static_cast<int64_t>(step)),
          end.elapsed);
  }
  wrong(checkpoints_.on_run_over(end), end.elapsed);
  if (end.outcome == RunOutcome::kCompleted) {
    if (told_ != settings_.steps && !settings_.may_leave)
      wrong(fmt::format("{} of {} steps were told", told_, settings_.steps), end.elapsed);
    return;
  }
  const bool expected = end.cause == EndCause::kWorkersLost ||
                        (settings_.servers_die && !settings_.recovers) ||
                        (settings_.recovers && end.cause == EndCause::kJoinTimeout) ||
                        (poisoned_ && end.cause == EndCause::kDiverged);
  if (!expected) wrong("the run failed: " + end.reason, end.elapsed);
}

}  // namespace drover
