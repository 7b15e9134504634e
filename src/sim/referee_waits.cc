// The Referee's checks of how long steps wait, and for which workers.
#include <fmt/format.h>

#include <algorithm>

#include "sim/referee.h"

namespace drover {
void Referee::on_load(const Load& load, TimePoint now) {
  wrong(load_.on_load(load, record_.decided(), now), now);
}

// The time at which a block has had the decision's number of gradients for the push grace. Nothing
// if it has fewer gradients.
std::optional<TimePoint> Referee::enough_at(BlockId id, const Account& account,
                                            const Decision& decision) {
  std::vector<TimePoint> times;
  for (const auto& [worker, at] : account.counted_at) {
    if (members_.at(books_[id].shard).is_member(worker)) times.push_back(at);
  }
  if (times.size() < decision.cutoff || decision.cutoff == 0) return std::nullopt;
  std::sort(times.begin(), times.end());
  return times[decision.cutoff - 1] + settings_.push_grace;
}

// A gradient was counted. Checks that the block still needed it.
void Referee::check_needed(const BlockBook& book, const FrameHeader& header, TimePoint now) {
  const ExpectedMembers::AtShard& shard = members_.at(book.shard);
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
  // The time limit counts from when the last block of the previous step has closed.
  const bool limited = decision.time_limit > Duration::zero() && shard.closed == header.step;
  if (limited && now > shard.opened + decision.time_limit && had >= std::max(1u, decision.at_least))
    wrong(fmt::format("step {} of block {} waited beyond its time limit with {} gradients",
                      header.step, header.block, had),
          now);
}

// A shard has closed a step. Checks that this block has waited long enough.
void Referee::check_enough(BlockId id, const BlockBook& book, const StepClosed& closed,
                           TimePoint now) {
  const ExpectedMembers::AtShard& shard = members_.at(book.shard);
  const Account& account = book.accounts.at(closed.step);
  // If the shard has other blocks, this one may have closed before a contributor was lost.
  const bool at_once = blocks_on_[book.shard] == 1;
  const auto in = std::count_if(account.counted.begin(), account.counted.end(),
                                [&](WorkerId each) { return !at_once || shard.is_member(each); });
  const auto count = static_cast<uint32_t>(in);
  const auto enough = [&](const Decision& decision) {
    // The time at which a block has closed is only known if it is the only one on its shard.
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
    const bool skips = asked != shard.asked.end() && asked->second > closed.step;
    if (since >= closed.step && closed.step > 0)
      continue;  // the block may have closed before it joined
    if (account.has(worker) || skips) continue;
    return wrong(fmt::format("step {} of block {} closed with {} gradients, without worker {}",
                             closed.step, id, count, worker),
                 now);
  }
}

// The first decision for a step must name all workers that are ready. (A decision that is repeated
// after a loss does not name workers that have become ready since.)
void Referee::check_named(const Decision& decision, TimePoint now) {
  if (decision.step < named_) return;
  named_ = decision.step + 1;
  wrong(shares_.on_decision(decision), now);
  stragglers_.on_decision();
  for (const WorkerId worker : members_.ready()) {
    if (std::find(decision.alive.begin(), decision.alive.end(), worker) == decision.alive.end())
      wrong(
          fmt::format("worker {} is ready, but step {} does not include it", worker, decision.step),
          now);
  }
}

}  // namespace drover
