// The Referee's checks of messages; the other checks are in referee_waits.cc, referee_record.cc and
// referee_restarts.cc.
#include "sim/referee.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace drover {
namespace {

constexpr double kFloatError = 1e-6;
// Scripts have at least this long to leave after the run has completed.
constexpr Duration kLeavingLeast = std::chrono::seconds(5);

std::string text_of(const Range& range) {
  if (range.low == range.high) return fmt::format("{}", range.low);
  return fmt::format("from {} to {}", range.low, range.high);
}

std::string name_of_push(const FrameHeader& header) {
  return fmt::format("worker {}'s gradient of block {} for step {}", header.worker, header.block,
                     header.step);
}

}  // namespace

void Referee::wrong(const std::string& what, TimePoint now) {
  if (verdict_.empty() && !what.empty())
    verdict_ = fmt::format("{} (at {:.3f} s)", what, seconds(now));
}

void Referee::on_breach(const std::string& what, TimePoint now) { wrong(what, now); }

// In an asynchronous run a restarted worker numbers its gradients from the beginning.
void Referee::on_welcome(ShardId shard, WorkerId worker) {
  if (!settings_.asynchronous) return;
  for (auto& [block, book] : books_) {
    if (book.shard != shard) continue;
    for (auto& [step, account] : book.accounts) account.counted.erase(worker);
  }
}

// When the run has completed, scripts are notified and have some time to pull the last parameters.
void Referee::on_farewell(Party from, const Address& to, const Farewell& farewell, TimePoint now) {
  if (!settings_.scripts || from.role != Role::kCoordinator ||
      farewell.outcome != RunOutcome::kCompleted)
    return;
  if (to.role == Role::kWorker) {
    leaving_.try_emplace(to.index, now);
    return;
  }
  for (const auto& [worker, since] : leaving_) {
    if (now - since < kLeavingLeast)
      wrong(
          fmt::format("the run ends {:.1f} s after worker {} was notified, which has not left yet",
                      seconds(now - since), worker),
          now);
  }
}

void Referee::on_received(Party from, const Outgoing& message, TimePoint now) {
  members_.on_received(from, message, now);
  const auto* control = std::get_if<Control>(&message.frame.payload);
  if (from.role == Role::kWorker && control && std::holds_alternative<Farewell>(*control))
    leaving_.erase(from.index);
}

void Referee::on_lost(Party at, WorkerId worker, TimePoint) {
  members_.on_lost(at, worker);
  if (at.role == Role::kShard) guard_.on_lost(worker);
  if (at.role == Role::kCoordinator) {
    stragglers_.on_lost(worker);
    shares_.on_lost(worker);
    leaving_.erase(worker);
  }
  if (at.role != Role::kShard) return;
  lates_.on_lost(at.index, worker);
  staleness_.on_lost(at.index, worker);
  std::erase_if(unanswered_, [&](const PushKey& key) {
    const auto& [block, step, pusher] = key;
    return pusher == worker && books_[block].shard == at.index;
  });
}

void Referee::on_sent(Party from, const Outgoing& message, TimePoint now) {
  members_.on_sent(from, message, now);
  const FrameHeader& header = message.frame.header;
  const auto* control = std::get_if<Control>(&message.frame.payload);
  const auto* slice = std::get_if<FloatSlice>(&message.frame.payload);
  if (control != nullptr) {
    if (const auto* plan = std::get_if<Plan>(control)) on_plan(*plan);
    if (const auto* closed = std::get_if<StepClosed>(control)) on_closed(from.index, *closed, now);
    if (const auto* decision = std::get_if<Decision>(control)) check_named(*decision, now);
    if (const auto* share = std::get_if<Share>(control)) shares_.on_share(message.to.index, *share);
    if (const auto* farewell = std::get_if<Farewell>(control))
      on_farewell(from, message.to, *farewell, now);
    if (from.role == Role::kShard && std::holds_alternative<Connected>(*control))
      on_welcome(from.index, message.to.index);
    return;
  }
  if (header.type == FrameType::kStop && from.role == Role::kCoordinator)
    wrong(stragglers_.on_stop(header.step, message.to.index), now);
  if (header.type == FrameType::kPull && from.role == Role::kWorker)
    stragglers_.on_pull(from.index, header.version);
  if (header.type == FrameType::kOffer && !lost_servers_.contains(books_[header.block].shard))
    unanswered_.insert({header.block, header.step, header.worker});
  if (from.role == Role::kWorker && slice != nullptr && header.step != kInitialStep) {
    on_push(from.index, header, slice->span(), now);
  } else if (header.type == FrameType::kAnswer) {
    unanswered_.erase({header.block, header.step, header.worker});
    if (header.step != kInitialStep) on_answer(header, now);
  } else if (header.type == FrameType::kParameters) {
    on_parameters(header, message.to, slice->span(), now);
  }
}

void Referee::on_plan(const Plan& plan) {
  if (!books_.empty()) return;
  for (const Block& block : plan.blocks.blocks) {
    BlockBook& book = books_[block.id];
    book.shard = block.shard;
    book.offset = block.offset;
    book.averaged = block.kind == TensorKind::kAveraged;
    book.rate = plan.tensors.at(block.tensor).rate;
    book.states[0] = {};
    ++blocks_on_[block.shard];
  }
}

void Referee::on_push(WorkerId worker, const FrameHeader& header,
                      std::span<const float> values_sent, TimePoint now) {
  const float gradient = values_sent.front();
  // No worker computes on parameters that are being written: all values of a block have one
  // version.
  if (!std::isnan(gradient) &&
      (gradient != values_sent.back() || gradient != values_sent[values_sent.size() / 2]))
    wrong(name_of_push(header) + " is of several versions", now);
  pushes_[{header.block, header.step, worker}] = {static_cast<double>(gradient), header.samples};
  if (settings_.asynchronous || std::isnan(gradient)) return;
  if (settings_.blocks_needed)
    return check_mixture(worker, header, static_cast<double>(gradient), now);
  // It must be the gradient of that step's samples, on that version of each block.
  const auto& states = books_[header.block].states;
  const auto state = states.find(header.step);
  if (state == states.end())
    return wrong(name_of_push(header) + " is for a step that has not begun", now);
  const double factor =
      settings_.gradient_factor ? settings_.gradient_factor(header.step, worker) : 1.0;
  const std::vector<double> targets = targets_of(worker, header);
  const auto range = [&](double target) {
    const double one = factor * (state->second.value.low - target);
    const double other = factor * (state->second.value.high - target);
    // The rounding error of the parameters is multiplied by the factor, too.
    const double error = kFloatError * std::max(0.0, std::abs(factor) - 1.0);
    return Range{std::min(one, other) - error, std::max(one, other) + error};
  };
  if (std::any_of(targets.begin(), targets.end(), [&](double target) {
        return is_in(static_cast<double>(gradient), range(target));
      }))
    return;
  wrong(fmt::format("{} is {}, but on version {} it is {}", name_of_push(header), gradient,
                    header.step, text_of(range(targets.front()))),
        now);
}

// The numbers that the gradient may pull to.
std::vector<double> Referee::targets_of(WorkerId worker, const FrameHeader& header) const {
  std::vector<double> targets = {settings_.target(header.step, worker)};
  for (const Share& share : shares_.may_use(worker, header.step, header.samples))
    targets.push_back(settings_.target_of(header.step * share.total + share.first, share.count));
  return targets;
}

// It must be the gradient of that step's samples on some version of the block. Only a limited
// number of blocks may be of an older version than the step's.
void Referee::check_mixture(WorkerId worker, const FrameHeader& header, double gradient,
                            TimePoint now) {
  bool known = false;
  bool fresh = false;
  for (const double target : targets_of(worker, header)) {
    for (const auto& [version, expected] : books_[header.block].states) {
      if (!is_in(gradient + target, expected.value)) continue;
      known = true;
      fresh = fresh || version >= header.step;
    }
  }
  if (!known) return wrong(name_of_push(header) + " is of a version that never existed", now);
  if (fresh) return;
  std::set<BlockId>& stale = stale_[{header.step, worker}];
  stale.insert(header.block);
  if (stale.size() + *settings_.blocks_needed > books_.size())
    wrong(fmt::format("worker {} began step {} with only {} of {} blocks fresh", worker,
                      header.step, books_.size() - stale.size(), books_.size()),
          now);
}

void Referee::on_answer(const FrameHeader& header, TimePoint now) {
  BlockBook& book = books_[header.block];
  Account& account = book.accounts[header.step];
  const ExpectedMembers::AtShard& shard = members_.at(book.shard);
  if (header.answer == Answer::kNotFinite) {
    saw_corrupt_gradient_ = true;
    account.refused.insert(header.worker);
  }
  if (header.answer == Answer::kLate && header.version == header.step &&
      header.step < settings_.steps && !settings_.asynchronous && shard.is_member(header.worker) &&
      shard.connected.contains(header.worker) &&
      pushes_.contains({header.block, header.step, header.worker}))
    wrong(name_of_push(header) + " was answered as late, though the step is open", now);
  if (header.answer == Answer::kDuplicate && !account.has(header.worker))
    wrong(name_of_push(header) + " was answered as a duplicate, but none was counted", now);
  if (header.answer == Answer::kAccepted) on_accepted(book, header, now);
  if (header.answer == Answer::kOutlier) {
    account.refused.insert(header.worker);
    on_outlier(book, header, now);
  }
  if (header.answer != Answer::kDuplicate && !settings_.asynchronous)
    lates_.on_answer(book.shard, header.step, header.worker);
  if (header.answer != Answer::kDuplicate && settings_.staleness)
    staleness_.on_answer(book.shard, header.worker, header.step, blocks_on_[book.shard]);
}

// It was refused because its norm is too large.
void Referee::on_outlier(const BlockBook& book, const FrameHeader& header, TimePoint now) {
  const auto found = pushes_.find({header.block, header.step, header.worker});
  if (found == pushes_.end())
    return wrong(name_of_push(header) + " was refused, but not sent", now);
  const double gradient = found->second.gradient;
  if (book.averaged || settings_.guard.rule != GuardRule::kRefuse ||
      !guard_.may_be_outlier(header.block, header.step, gradient))
    wrong(fmt::format("{} was refused for its norm of {}, which is no larger than others",
                      name_of_push(header), gradient),
          now);
  guard_.note(header.block, header.step, header.worker, gradient);
}

void Referee::on_accepted(BlockBook& book, const FrameHeader& header, TimePoint now) {
  const std::string what = name_of_push(header);
  Account& account = book.accounts[header.step];
  if (!settings_.asynchronous && header.version != header.step)
    wrong(fmt::format("{} was counted in step {}", what, header.version), now);
  if (!members_.at(book.shard).is_member(header.worker))
    wrong(what + " was counted, but it is not a member", now);
  const auto found = pushes_.find({header.block, header.step, header.worker});
  if (found == pushes_.end()) return wrong(what + " was counted, but never sent", now);
  const Push& push = found->second;
  if (std::isnan(push.gradient)) wrong(what + " has NaN, but was counted", now);
  if (!settings_.asynchronous) check_needed(book, header, now);
  if (!account.counted.insert(header.worker).second) wrong(what + " was counted twice", now);
  account.counted_at[header.worker] = now;
  Range counted{push.gradient, push.gradient};
  if (!book.averaged && settings_.guard.rule != GuardRule::kOff) {
    if (settings_.guard.rule == GuardRule::kRefuse &&
        guard_.must_be_outlier(header.block, header.step, push.gradient))
      wrong(fmt::format("{} was counted, with a norm of {}", what, push.gradient), now);
    counted = guard_.counted(header.block, header.step, push.gradient);
    guard_.note(header.block, header.step, header.worker, push.gradient);
  }
  account.samples += push.samples;
  account.weighted.low += push.samples * counted.low;
  account.weighted.high += push.samples * counted.high;
  if (!settings_.asynchronous) return;
  update(book, {push.gradient, push.gradient}, settings_.learning_rate);
}

void Referee::update(BlockBook& book, const Range& gradient, double rate) const {
  Range& momentum = book.state.momentum;
  momentum = {settings_.momentum * momentum.low + gradient.low,
              settings_.momentum * momentum.high + gradient.high};
  book.state.value.low -= rate * momentum.high;
  book.state.value.high -= rate * momentum.low;
}

// A worker that has asked for a later version will not push to this step. So there may be no
// gradient to wait for in two cases. First: another block has closed the step, the workers that it
// did not wait for skip the step, and those that contributed die before their gradients reach this
// block. Second: all members of the step die, and the gradients of workers that have just joined
// were late, since they were not members yet.
bool Referee::may_be_empty(const BlockBook& book, Step step) {
  const ExpectedMembers::AtShard& shard = members_.at(book.shard);
  if (std::none_of(shard.asked.begin(), shard.asked.end(),
                   [&](const auto& each) { return each.second > step; }))
    return false;
  // A worker that continues without a block may skip any number of its steps.
  if (settings_.blocks_needed) return true;
  if (std::all_of(shard.members.begin(), shard.members.end(),
                  [&](const auto& member) { return member.second >= step; }))
    return true;
  return std::any_of(books_.begin(), books_.end(), [&](const auto& entry) {
    const auto found = entry.second.accounts.find(step);
    return found != entry.second.accounts.end() &&
           !(found->second.counted.empty() && found->second.refused.empty());
  });
}

// Repeats the updates that the shard should have made.
void Referee::advance(BlockId id, BlockBook& book, Version version, TimePoint now) {
  while (book.version < version) {
    const Account& account = book.accounts[book.version];
    if (account.samples > 0) {
      const auto samples = static_cast<double>(account.samples);
      const Range mean{account.weighted.low / samples, account.weighted.high / samples};
      if (book.averaged) {
        book.state.value = mean;
      } else {
        update(book, mean, rate_at(book.version) * book.rate);
      }
    } else if (account.refused.empty() && !may_be_empty(book, book.version)) {
      wrong(fmt::format("step {} of block {} closed without a gradient", book.version, id), now);
    }
    book.states[++book.version] = book.state;
  }
}

void Referee::on_parameters(const FrameHeader& header, const Address& to,
                            std::span<const float> values, TimePoint now) {
  BlockBook& book = books_[header.block];
  const bool snapshot = (header.flags & kSnapshotFlag) != 0;
  if (!snapshot) {
    if (header.version < book.seen)
      wrong(fmt::format("version {} of block {} was sent after version {}", header.version,
                        header.block, book.seen),
            now);
    book.seen = std::max(book.seen, header.version);
    if (settings_.staleness)
      wrong(staleness_.on_parameters(book.shard, to.index, members_.at(book.shard),
                                     *settings_.staleness),
            now);
  }
  if (snapshot && settings_.asynchronous) return;
  if (!settings_.asynchronous) advance(header.block, book, header.version, now);
  Range& expected = settings_.asynchronous ? book.state.value : book.states[header.version].value;
  for (const float value : {values.front(), values.back()}) {
    if (is_in(static_cast<double>(value), expected)) continue;
    return wrong(fmt::format("version {} of block {} is {}, but the counted gradients give {}",
                             header.version, header.block, value, text_of(expected)),
                 now);
  }
  // A guard may have clipped a gradient by an unknown factor; from here on the value is known.
  if (expected.low == expected.high) return;
  const auto exact = static_cast<double>(values.front());
  expected = {exact, exact};
  if (header.version == book.version) book.state.value = expected;
}

void Referee::on_closed(ShardId shard, const StepClosed& closed, TimePoint now) {
  if (closed.step + 1 != members_.at(shard).closed)
    wrong(fmt::format("shard {} closed step {} out of order", shard, closed.step), now);
  if (settings_.asynchronous) return;
  uint64_t least = ~uint64_t{0};
  for (auto& [id, book] : books_) {
    if (book.shard != shard) continue;
    const Account& account = book.accounts[closed.step];
    least = std::min(least, account.samples);
    for (const StepClosed::Arrival& arrival : closed.arrivals) {
      if (!account.has(arrival.worker))
        wrong(fmt::format(
                  "shard {} reports that worker {} arrived in step {}, but its block {} did not",
                  shard, arrival.worker, closed.step, id),
              now);
    }
    advance(id, book, closed.step + 1, now);
    check_enough(id, book, closed, now);
  }
  wrong(lates_.on_closed(shard, closed, blocks_on_[shard], members_.at(shard)), now);
  if (least != closed.samples)
    wrong(fmt::format("shard {} divided step {} by {} samples, but {} arrived", shard, closed.step,
                      closed.samples, least),
          now);
}

}  // namespace drover
