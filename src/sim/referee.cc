#include "sim/referee.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace drover {
namespace {

// Floats against doubles, over a few dozen updates.
constexpr double kTolerance = 1e-4;

}  // namespace

void Referee::wrong(const std::string& what, TimePoint now) {
  if (verdict_.empty()) verdict_ = fmt::format("{} (at {:.3f} s)", what, seconds(now));
}

void Referee::on_breach(const std::string& what, TimePoint now) { wrong(what, now); }

// Where workers run freely, a new process numbers its gradients anew.
void Referee::on_worker(WorkerId worker) {
  if (!settings_.free_running) return;
  for (auto& [block, book] : books_) {
    for (auto& [step, account] : book.accounts) account.counted.erase(worker);
  }
}

void Referee::on_load(size_t pending, TimePoint now) {
  most_pending_ = std::max(most_pending_, pending);
  if (pending > settings_.pending_limit)
    wrong(fmt::format("{} things are waiting at once, more than {}", pending,
                      settings_.pending_limit),
          now);
}

void Referee::on_sent(Endpoint from, const Outgoing& message, TimePoint now) {
  const FrameHeader& header = message.frame.header;
  const auto* control = std::get_if<Control>(&message.frame.payload);
  const auto* slice = std::get_if<FloatSlice>(&message.frame.payload);
  if (control != nullptr) {
    if (const auto* plan = std::get_if<Plan>(control)) on_plan(*plan);
    if (const auto* closed = std::get_if<StepClosed>(control)) on_closed(from.index, *closed, now);
  } else if (from.role == Role::kWorker && slice != nullptr && header.step != kInitialStep) {
    on_push(from.index, header, slice->span().front());
  } else if (header.type == FrameType::kAnswer && header.step != kInitialStep) {
    on_answer(header, now);
  } else if (header.type == FrameType::kParameters && (header.flags & kSnapshotFlag) == 0) {
    on_parameters(header, slice->span(), now);
  }
}

void Referee::on_plan(const Plan& plan) {
  for (const Block& block : plan.blocks.blocks) books_[block.id].shard = block.shard;
}

void Referee::on_push(WorkerId worker, const FrameHeader& header, float gradient) {
  pushes_[{header.block, header.step, worker}] = {static_cast<double>(gradient), header.samples};
}

void Referee::on_answer(const FrameHeader& header, TimePoint now) {
  const std::string what = fmt::format("worker {}'s gradient of block {} for step {}",
                                       header.worker, header.block, header.step);
  Account& account = books_[header.block].accounts[header.step];
  if (header.answer == Answer::kNotFinite) account.refused.insert(header.worker);
  if (header.answer != Answer::kAccepted) return;
  if (!settings_.free_running && header.version != header.step)
    wrong(fmt::format("{} was counted in step {}", what, header.version), now);
  const auto push = pushes_.find({header.block, header.step, header.worker});
  if (push == pushes_.end()) return wrong(what + " was counted, but never sent", now);
  if (std::isnan(push->second.gradient)) wrong(what + " has NaN and was counted", now);
  if (!account.counted.insert(header.worker).second) wrong(what + " was counted twice", now);
  account.samples += push->second.samples;
  account.weighted += push->second.samples * push->second.gradient;
}

// Does by hand what the shard should have done.
void Referee::advance(BlockId id, BlockBook& book, Version version, TimePoint now) {
  for (; book.version < version; ++book.version) {
    const Account& account = book.accounts[book.version];
    if (account.samples == 0) {
      if (account.refused.empty())
        wrong(fmt::format("step {} of block {} closed without a gradient", book.version, id), now);
      continue;
    }
    book.value -= settings_.learning_rate * account.weighted / static_cast<double>(account.samples);
  }
}

void Referee::on_parameters(const FrameHeader& header, std::span<const float> values,
                            TimePoint now) {
  BlockBook& book = books_[header.block];
  if (header.version < book.seen)
    wrong(fmt::format("version {} of block {} was sent after version {}", header.version,
                      header.block, book.seen),
          now);
  book.seen = std::max(book.seen, header.version);
  if (settings_.free_running) return;
  advance(header.block, book, header.version, now);
  for (const float value : {values.front(), values.back()}) {
    if (std::abs(static_cast<double>(value) - book.value) <= kTolerance) continue;
    return wrong(fmt::format("version {} of block {} is {}, but what was counted makes {}",
                             header.version, header.block, value, book.value),
                 now);
  }
}

void Referee::on_closed(ShardId shard, const StepClosed& closed, TimePoint now) {
  if (closed.step != closed_[shard]++)
    wrong(fmt::format("shard {} closed step {} out of turn", shard, closed.step), now);
  if (settings_.free_running) return;
  uint64_t least = ~uint64_t{0};
  for (const auto& [id, book] : books_) {
    if (book.shard != shard) continue;
    const auto found = book.accounts.find(closed.step);
    least = std::min(least, found == book.accounts.end() ? 0 : found->second.samples);
    for (const StepClosed::Arrival& arrival : closed.arrivals) {
      if (found == book.accounts.end() || (!found->second.counted.contains(arrival.worker) &&
                                           !found->second.refused.contains(arrival.worker)))
        wrong(fmt::format("shard {} says worker {} arrived in step {}, but block {} did not", shard,
                          arrival.worker, closed.step, id),
              now);
    }
  }
  if (least != closed.samples)
    wrong(fmt::format("shard {} divided step {} by {} samples, but {} arrived", shard, closed.step,
                      closed.samples, least),
          now);
}

Status Referee::on_decision(const DecisionRecord& decision) {
  if (decision.step != decided_++) wrong("steps are decided out of turn", TimePoint{});
  if (decision.cutoff < 1 || decision.cutoff > decision.alive)
    wrong(fmt::format("step {} waits for {} of {} workers", decision.step, decision.cutoff,
                      decision.alive),
          TimePoint{});
  if (decision.reason.empty()) wrong("a decision has no reason", TimePoint{});
  return done();
}

Status Referee::on_step(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) {
  const TimePoint now = step.at + step.elapsed;
  if (step.step != told_++) wrong(fmt::format("step {} is told out of turn", step.step), now);
  if (step.elapsed > settings_.step_limit)
    wrong(fmt::format("step {} took {:.1f} s, more than {:.1f} s", step.step, seconds(step.elapsed),
                      seconds(settings_.step_limit)),
          now);
  for (const ArrivalRecord& arrival : arrivals) {
    if (arrival.censored) censored_[step.step].insert(arrival.worker);
    if (arrival.run_time > step.elapsed + settings_.step_limit)
      wrong(fmt::format("worker {}'s run-time in step {} is longer than the step", arrival.worker,
                        step.step),
            now);
  }
  return done();
}

Status Referee::on_late_arrival(const ArrivalRecord& arrival) {
  // A late truth is for somebody who was recorded as cut short, and comes once.
  const auto found = censored_.find(arrival.step);
  if (found != censored_.end() && found->second.erase(arrival.worker) == 0)
    wrong(fmt::format("worker {}'s run-time in step {} became known twice", arrival.worker,
                      arrival.step),
          TimePoint{});
  return done();
}

void Referee::on_run_over(Step steps, const RunEnd& end) {
  if (end.outcome != RunOutcome::kCompleted) return;
  if (told_ != steps) wrong(fmt::format("{} of {} steps were told", told_, steps), end.elapsed);
}

}  // namespace drover
