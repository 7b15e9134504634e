// What the Referee checks of the waiting: not too long, not too short, for the right ones.
#include <fmt/format.h>

#include <algorithm>

#include "coordinator/step_ledger.h"
#include "core/chance.h"
#include "sim/referee.h"

namespace drover {
namespace {

// A step of the largest hunt is a few thousand events.
constexpr uint64_t kEventsPerStep = 500'000;

// So many steps later a shard need not tell any more how late somebody was.
constexpr Step kStepsRemembered = 50;

}  // namespace

void Referee::on_load(const Load& load, TimePoint now) {
  most_.events = std::max(most_.events, load.events);
  most_.kept = std::max(most_.kept, load.kept);
  most_.kept_by_shard = std::max(most_.kept_by_shard, load.kept_by_shard);
  if (load.events > settings_.events_limit)
    wrong(fmt::format("{} things are under way at once, more than {}", load.events,
                      settings_.events_limit),
          now);
  if (load.kept > settings_.kept_limit)
    wrong(fmt::format("a server remembers {} things at once, more than {}", load.kept,
                      settings_.kept_limit),
          now);
  if (load.kept_by_shard > settings_.shard_kept_limit)
    wrong(fmt::format("a shard remembers {} things at once, more than {}", load.kept_by_shard,
                      settings_.shard_kept_limit),
          now);
  if (decided_ != decided_before_) {
    decided_before_ = decided_;
    decided_at_ = now;
    events_since_ = 0;
  }
  if (now - decided_at_ > settings_.step_limit || ++events_since_ > kEventsPerStep)
    wrong(fmt::format("no step has opened since {:.1f} s, and all are busy", seconds(decided_at_)),
          now);
}

// When a block has, or will have had, as many gradients as the decision says for as long as the
// grace. Nothing if it has fewer.
std::optional<TimePoint> Referee::enough_at(BlockId id, const Account& account,
                                            const Decision& decision) {
  std::vector<TimePoint> times;
  for (const auto& [worker, at] : account.counted_at) {
    if (attendance_.at(books_[id].shard).is_member(worker)) times.push_back(at);
  }
  if (times.size() < decision.cutoff || decision.cutoff == 0) return std::nullopt;
  std::sort(times.begin(), times.end());
  return times[decision.cutoff - 1] + settings_.push_grace;
}

// A gradient has come in time. Had the block enough already?
void Referee::check_needed(const BlockBook& book, const FrameHeader& header, TimePoint now) {
  const Attendance::AtShard& shard = attendance_.at(book.shard);
  if (!shard.decision || shard.decision->step != header.step) return;
  const auto account = book.accounts.find(header.step);
  if (account == book.accounts.end()) return;
  const auto& counted = account->second.counted;
  const auto alive = std::count_if(counted.begin(), counted.end(),
                                   [&](WorkerId worker) { return shard.is_member(worker); });
  const auto had = static_cast<uint32_t>(alive);
  const Decision& decision = *shard.decision;
  const auto due = enough_at(header.block, account->second, decision);
  if (due && (settings_.push_grace == Duration::zero() || now > std::max(*due, shard.decided)))
    wrong(fmt::format("step {} of block {} waited for more than {} gradients", header.step,
                      header.block, decision.cutoff),
          now);
  // The time runs from when the last block of the step before has closed.
  const bool limited = decision.time_limit > Duration::zero() && shard.closed == header.step;
  if (limited && now > shard.opened + decision.time_limit && had >= std::max(1u, decision.at_least))
    wrong(fmt::format("step {} of block {} waited beyond its time limit with {} gradients",
                      header.step, header.block, had),
          now);
}

// A shard has closed a step. Had this block what it should have waited for?
void Referee::check_enough(BlockId id, const BlockBook& book, const StepClosed& closed,
                           TimePoint now) {
  const Attendance::AtShard& shard = attendance_.at(book.shard);
  const Account& account = book.accounts.at(closed.step);
  // Where there are other blocks, this one may have closed before its contributor was lost.
  const bool at_once = blocks_on_[book.shard] == 1;
  const auto in = std::count_if(account.counted.begin(), account.counted.end(),
                                [&](WorkerId each) { return !at_once || shard.is_member(each); });
  const auto count = static_cast<uint32_t>(in);
  const auto enough = [&](const Decision& decision) {
    // Of a block that is alone on its shard it is known when it has closed.
    const auto due = enough_at(id, account, decision);
    const bool too_soon = at_once && due && now < *due;
    return ((count >= decision.cutoff && !too_soon) ||
            (decision.time_limit > Duration::zero() && closed.elapsed >= decision.time_limit &&
             count >= std::max(1u, decision.at_least)));
  };
  const auto decided = shard.decisions.find(closed.step);
  if (decided != shard.decisions.end() &&
      std::any_of(decided->second.begin(), decided->second.end(), enough))
    return;
  for (const auto& [worker, since] : shard.members) {
    const auto asked = shard.asked.find(worker);
    const bool passes_over = asked != shard.asked.end() && asked->second > closed.step;
    if (since >= closed.step && closed.step > 0) continue;  // the block may have closed before
    if (account.has(worker) || passes_over) continue;
    return wrong(fmt::format("step {} of block {} closed with {} gradients, without worker {}",
                             closed.step, id, count, worker),
                 now);
  }
}

// Of whoever was left out the shard tells how long it took after all, as soon as that is known.
// It does so once; of a gradient that is whole when its step closes, then and with the next step.
void Referee::check_late(ShardId shard, const StepClosed& closed, TimePoint now) {
  for (const StepClosed::Arrival& told : closed.late) {
    if (++late_told_[{shard, told.step, told.worker}] > 2)
      wrong(fmt::format("shard {} tells again and again how long worker {} took in step {}", shard,
                        told.worker, told.step),
            now);
  }
  for (auto each = straggling_.begin(); each != straggling_.end();) {
    const auto [where, step, worker] = *each;
    const auto answered = answered_.find(*each);
    const bool whole = answered != answered_.end() && answered->second >= blocks_on_[shard];
    if (where != shard || (!whole && step + kStepsRemembered > closed.step)) {
      ++each;
      continue;
    }
    const StepClosed::Arrival* late = nullptr;
    for (const StepClosed::Arrival& told : closed.late) {
      if (told.worker == worker && told.step == step) late = &told;
    }
    if (whole && late == nullptr)
      wrong(fmt::format("shard {} does not tell how long worker {} took in step {}", shard, worker,
                        step),
            now);
    each = straggling_.erase(each);
  }
  for (const auto& [worker, since] : attendance_.at(shard).members) {
    if (std::none_of(closed.arrivals.begin(), closed.arrivals.end(),
                     [&, who = worker](const auto& arrival) { return arrival.worker == who; }))
      straggling_.insert({shard, closed.step, worker});
  }
}

// The first decision for a step names everybody who is ready. (One that repeats it after a loss
// does not name who has come since.)
void Referee::check_named(const Decision& decision, TimePoint now) {
  if (decision.step < named_) return;
  named_ = decision.step + 1;
  wrong(shares_.on_decision(decision), now);
  gone_.clear();
  for (const WorkerId worker : attendance_.ready()) {
    if (std::find(decision.alive.begin(), decision.alive.end(), worker) == decision.alive.end())
      wrong(
          fmt::format("worker {} is ready, but step {} goes on without it", worker, decision.step),
          now);
  }
}

bool Referee::may_finish(Step step, WorkerId worker) const {
  if (settings_.all_finish) return true;
  const uint64_t luck =
      draw({settings_.probe_seed, static_cast<uint64_t>(Purpose::kProbes), step, worker});
  return unit_interval(luck) < settings_.probe;
}

// The order is a watermark: it ends whatever the worker is at.
void Referee::check_stop(Step step, WorkerId worker, TimePoint now) {
  stopped_.insert({step, worker});
  if (may_finish(step, worker))
    wrong(fmt::format("worker {} is told to stop with step {}, which it may finish", worker, step),
          now);
  const auto finishes = finishing_.find(worker);
  if (finishes != finishing_.end() && step <= finishes->second + StepLedger::kStepsRemembered)
    wrong(fmt::format("worker {} is told to stop with step {}, while it finishes step {} to show "
                      "how long it takes",
                      worker, step, finishes->second),
          now);
}

// ssp: a gradient is whole on a shard when its last block there is answered.
void Referee::count_whole(const BlockBook& book, const FrameHeader& header) {
  const std::pair key{book.shard, header.worker};
  if (++parts_[key][header.step] < blocks_on_[book.shard]) return;
  parts_[key].erase(header.step);
  clocks_[key] = std::max(clocks_[key], header.step + 1);
}

void Referee::check_staleness(ShardId shard, WorkerId worker, TimePoint now) {
  const Attendance::AtShard& here = attendance_.at(shard);
  const auto begins = here.asked.find(worker);
  if (begins == here.asked.end()) return;
  for (const auto& [member, since] : here.members) {
    const auto clock = clocks_.find({shard, member});
    if (clock == clocks_.end() || begins->second <= clock->second + *settings_.staleness) continue;
    wrong(fmt::format("worker {} begins its gradient {} on shard {}, but worker {} is at {}",
                      worker, begins->second, shard, member, clock->second),
          now);
  }
}

}  // namespace drover
