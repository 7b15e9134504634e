// What the Referee checks of the messages; the rest is in referee_waits.cc and referee_record.cc.
#include "sim/referee.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace drover {
namespace {

// Floats against doubles: an error of a part in ten million an update, and updates forget.
constexpr double kTolerance = 1e-4;

std::string name_of_push(const FrameHeader& header) {
  return fmt::format("worker {}'s gradient of block {} for step {}", header.worker, header.block,
                     header.step);
}

}  // namespace

void Referee::wrong(const std::string& what, TimePoint now) {
  if (verdict_.empty()) verdict_ = fmt::format("{} (at {:.3f} s)", what, seconds(now));
}

void Referee::on_breach(const std::string& what, TimePoint now) { wrong(what, now); }

// Where workers run freely, a new process numbers its gradients anew.
void Referee::on_welcome(ShardId shard, WorkerId worker) {
  if (!settings_.free_running) return;
  for (auto& [block, book] : books_) {
    if (book.shard != shard) continue;
    for (auto& [step, account] : book.accounts) account.counted.erase(worker);
  }
}

void Referee::on_received(Party from, const Outgoing& message, TimePoint now) {
  attendance_.on_received(from, message, now);
}

void Referee::on_lost(Party at, WorkerId worker, TimePoint) {
  attendance_.on_lost(at, worker);
  if (at.role == Role::kCoordinator) {
    gone_.insert(worker);
    finishing_.erase(worker);
  }
  if (at.role != Role::kShard) return;
  const auto is_theirs = [&](const std::tuple<ShardId, Step, WorkerId>& key) {
    return std::get<0>(key) == at.index && std::get<2>(key) == worker;
  };
  std::erase_if(answered_, [&](const auto& entry) { return is_theirs(entry.first); });
  std::erase_if(straggling_, is_theirs);
  parts_.erase({at.index, worker});
  clocks_.erase({at.index, worker});
  std::erase_if(unanswered_, [&](const PushKey& key) {
    const auto& [block, step, pusher] = key;
    return pusher == worker && books_[block].shard == at.index;
  });
}

void Referee::on_sent(Party from, const Outgoing& message, TimePoint now) {
  attendance_.on_sent(from, message, now);
  const FrameHeader& header = message.frame.header;
  const auto* control = std::get_if<Control>(&message.frame.payload);
  const auto* slice = std::get_if<FloatSlice>(&message.frame.payload);
  if (control != nullptr) {
    if (const auto* plan = std::get_if<Plan>(control)) on_plan(*plan);
    if (const auto* closed = std::get_if<StepClosed>(control)) on_closed(from.index, *closed, now);
    if (const auto* decision = std::get_if<Decision>(control)) check_named(*decision, now);
    if (from.role == Role::kShard && std::holds_alternative<Connected>(*control))
      on_welcome(from.index, message.to.index);
    return;
  }
  if (header.type == FrameType::kStop && from.role == Role::kCoordinator)
    check_stop(header.step, message.to.index, now);
  if (header.type == FrameType::kPull && from.role == Role::kWorker) {
    asks_[from.index] = header.version;
    const auto finishes = finishing_.find(from.index);
    if (finishes != finishing_.end() && finishes->second < header.version)
      finishing_.erase(finishes);
  }
  if (header.type == FrameType::kOffer)
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
    books_[block.id].shard = block.shard;
    books_[block.id].values[0] = 0.0;
    ++blocks_on_[block.shard];
  }
}

void Referee::on_push(WorkerId worker, const FrameHeader& header,
                      std::span<const float> values_sent, TimePoint now) {
  const float gradient = values_sent.front();
  // Nobody computes on parameters that are being written to: a block is of one version.
  if (!std::isnan(gradient) &&
      (gradient != values_sent.back() || gradient != values_sent[values_sent.size() / 2]))
    wrong(name_of_push(header) + " is of a mixture of versions", now);
  pushes_[{header.block, header.step, worker}] = {static_cast<double>(gradient), header.samples};
  if (settings_.free_running || std::isnan(gradient)) return;
  if (settings_.blocks_needed)
    return check_mixture(worker, header, static_cast<double>(gradient), now);
  // It must be the gradient of that step's samples, on that version of every block.
  const auto& values = books_[header.block].values;
  const auto value = values.find(header.step);
  if (value == values.end()) return wrong(name_of_push(header) + " has not begun", now);
  const double expected = value->second - settings_.target(header.step, worker);
  if (std::abs(static_cast<double>(gradient) - expected) > kTolerance)
    wrong(fmt::format("{} is {}, but on version {} it is {}", name_of_push(header), gradient,
                      header.step, expected),
          now);
}

// It must be the gradient of that step's samples, on some version of the block; and on one that
// old only of so many.
void Referee::check_mixture(WorkerId worker, const FrameHeader& header, double gradient,
                            TimePoint now) {
  const double value = gradient + settings_.target(header.step, worker);
  bool known = false;
  bool fresh = false;
  for (const auto& [version, expected] : books_[header.block].values) {
    if (std::abs(value - expected) > kTolerance) continue;
    known = true;
    fresh = fresh || version >= header.step;
  }
  if (!known) return wrong(name_of_push(header) + " is of no version that there was", now);
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
  const Attendance::AtShard& shard = attendance_.at(book.shard);
  if (header.answer == Answer::kNotFinite) {
    poisoned_ = true;
    account.refused.insert(header.worker);
  }
  if (header.answer == Answer::kLate && header.version == header.step &&
      header.step < settings_.steps && !settings_.free_running && shard.is_member(header.worker) &&
      shard.connected.contains(header.worker) &&
      pushes_.contains({header.block, header.step, header.worker}))
    wrong(name_of_push(header) + " was called late, though the step is open", now);
  if (header.answer == Answer::kDuplicate && !account.has(header.worker))
    wrong(name_of_push(header) + " was called a duplicate, but none was counted", now);
  if (header.answer == Answer::kAccepted) on_accepted(book, header, now);
  if (header.answer != Answer::kDuplicate && !settings_.free_running)
    ++answered_[{book.shard, header.step, header.worker}];
  if (header.answer != Answer::kDuplicate && settings_.staleness) count_whole(book, header);
}

void Referee::on_accepted(BlockBook& book, const FrameHeader& header, TimePoint now) {
  const std::string what = name_of_push(header);
  Account& account = book.accounts[header.step];
  if (!settings_.free_running && header.version != header.step)
    wrong(fmt::format("{} was counted in step {}", what, header.version), now);
  if (!attendance_.at(book.shard).is_member(header.worker))
    wrong(what + " was counted, but it is not a member", now);
  const auto found = pushes_.find({header.block, header.step, header.worker});
  if (found == pushes_.end()) return wrong(what + " was counted, but never sent", now);
  const Push& push = found->second;
  if (std::isnan(push.gradient)) wrong(what + " has NaN and was counted", now);
  if (!settings_.free_running) check_needed(book, header, now);
  if (!account.counted.insert(header.worker).second) wrong(what + " was counted twice", now);
  account.counted_at[header.worker] = now;
  account.samples += push.samples;
  account.weighted += push.samples * push.gradient;
  if (settings_.free_running) book.value -= settings_.learning_rate * push.gradient;
}

// Whoever has asked for a later version will not push, so that in two cases nobody is left to wait
// for. Where another block has closed a step, those whom it did not wait for pass the step over,
// and those who did contribute may die before their gradients are here. And where all members of a
// step die, what those pushed who have just come was late: they were not members yet.
bool Referee::may_be_empty(const BlockBook& book, Step step) {
  const Attendance::AtShard& shard = attendance_.at(book.shard);
  if (std::none_of(shard.asked.begin(), shard.asked.end(),
                   [&](const auto& each) { return each.second > step; }))
    return false;
  // Who goes on without a block may pass over any number of its steps.
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

// Does by hand what the shard should have done.
void Referee::advance(BlockId id, BlockBook& book, Version version, TimePoint now) {
  while (book.version < version) {
    const Account& account = book.accounts[book.version];
    if (account.samples > 0) {
      book.value -=
          settings_.learning_rate * account.weighted / static_cast<double>(account.samples);
    } else if (account.refused.empty() && !may_be_empty(book, book.version)) {
      wrong(fmt::format("step {} of block {} closed without a gradient", book.version, id), now);
    }
    book.values[++book.version] = book.value;
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
    if (settings_.staleness) check_staleness(book.shard, to.index, now);
  }
  if (snapshot && settings_.free_running) return;
  if (!settings_.free_running) advance(header.block, book, header.version, now);
  const double expected = settings_.free_running ? book.value : book.values[header.version];
  for (const float value : {values.front(), values.back()}) {
    if (std::abs(static_cast<double>(value) - expected) <= kTolerance) continue;
    return wrong(fmt::format("version {} of block {} is {}, but what was counted makes {}",
                             header.version, header.block, value, expected),
                 now);
  }
}

void Referee::on_closed(ShardId shard, const StepClosed& closed, TimePoint now) {
  if (closed.step + 1 != attendance_.at(shard).closed)
    wrong(fmt::format("shard {} closed step {} out of turn", shard, closed.step), now);
  if (settings_.free_running) return;
  uint64_t least = ~uint64_t{0};
  for (auto& [id, book] : books_) {
    if (book.shard != shard) continue;
    const Account& account = book.accounts[closed.step];
    least = std::min(least, account.samples);
    for (const StepClosed::Arrival& arrival : closed.arrivals) {
      if (!account.has(arrival.worker))
        wrong(fmt::format("shard {} says worker {} arrived in step {}, but block {} did not", shard,
                          arrival.worker, closed.step, id),
              now);
    }
    advance(id, book, closed.step + 1, now);
    check_enough(id, book, closed, now);
  }
  check_late(shard, closed, now);
  if (least != closed.samples)
    wrong(fmt::format("shard {} divided step {} by {} samples, but {} arrived", shard, closed.step,
                      closed.samples, least),
          now);
}

}  // namespace drover
