// The shard's steps: when a block closes, what the coordinator is told, who was late.
#include <algorithm>
#include <bit>
#include <limits>

#include "core/chance.h"
#include "server/shard.h"
#include "wire/limits.h"

namespace drover {
namespace {

// Who is later than that is not asked any more how late.
constexpr size_t kOpeningsKept = 64;
// Nobody tells a learning rate for a step so far ahead.
constexpr Step kRatesMax = 1'024;

}  // namespace

std::optional<TimePoint> Shard::wake_at() const {
  if (!open_ || finished() || clocks_) return std::nullopt;
  const auto limit = deadline();
  std::optional<TimePoint> next;
  for (const auto& [id, hosted] : blocks_) {
    const ShardBlock& block = *hosted.block;
    // A block that has too little at the deadline closes with the push that makes it enough.
    std::optional<TimePoint> at;
    if (limit && enough_at_deadline(block)) at = limit;
    const Decision* const decision = decision_about(block.version());
    if (decision != nullptr && plan_->push_grace > Duration::zero() &&
        block.complete(decision->cutoff)) {
      const auto enough = enough_since(hosted, plan_->push_grace);
      if (enough) at = std::min(at.value_or(*enough), *enough);
    }
    if (at) next = std::min(next.value_or(*at), *at);
  }
  return next;
}

void Shard::on_time(TimePoint now, Outbox& out) {
  for (auto& [id, hosted] : blocks_) {
    if (!open_ || finished() || clocks_) break;
    const auto due = enough_since(hosted, plan_->push_grace);
    if (due && now >= *due && members_.count() > 0) close(hosted, now, out);
  }
  grant_offers(out);
}

const Decision* Shard::decision_about(Step step) const {
  if (decision_ && decision_->step == step) return &*decision_;
  const auto found = decisions_.find(step);
  return found == decisions_.end() ? nullptr : &found->second;
}

void Shard::close_complete(TimePoint now, Outbox& out) {
  for (auto& [id, hosted] : blocks_) close_if_complete(hosted, now, out);
}

bool Shard::may_close(const Hosted& hosted, TimePoint now) const {
  const ShardBlock& block = *hosted.block;
  // With nobody left the run is over; steps that nobody took part in are not steps.
  if (!open_ || members_.count() == 0) return false;
  if (clocks_) return !block.finished() && block.round().answered >= members_.count();
  if (plan_->weak && block.version() > decision_->step + kUndecidedMax) return false;
  // What is kept for whoever starts over must not grow.
  if (plan_->standby && block.version() > decision_->step + kKeptAheadMax) return false;
  if (block.everybody_done()) return true;
  // Until the decision for a step is known, everybody alive is waited for.
  const Decision* const decision = decision_about(block.version());
  if (decision != nullptr && block.complete(decision->cutoff)) {
    if (plan_->push_grace == Duration::zero()) return true;
    const auto enough = enough_since(hosted, plan_->push_grace);
    if (enough && now > *enough) return true;
  }
  // Whoever arrives in the very moment of the limit is in time, like those before.
  const auto limit = deadline();
  return limit && now > *limit && enough_at_deadline(block);
}

// When the time limit of the open step ends, if it has one.
std::optional<TimePoint> Shard::deadline() const {
  if (!open_ || finished()) return std::nullopt;
  const Decision* const decision = decision_about(step_);
  if (decision == nullptr || decision->time_limit == Duration::zero()) return std::nullopt;
  return opened_.at(step_) + decision->time_limit;
}

// Whether this block of the open step waits for nothing but the deadline.
bool Shard::enough_at_deadline(const ShardBlock& block) const {
  const Decision* const decision = decision_about(step_);
  return decision != nullptr && block.version() == step_ &&
         block.contributed() >= std::max(decision->at_least, 1u);
}

// Since when a block has what the decision about its step says, or had it so much longer than the
// grace; absent: it has not, or it closes at once without one, everybody being there. A time limit
// is a limit: there is no grace beyond it.
std::optional<TimePoint> Shard::enough_since(const Hosted& hosted, Duration grace) const {
  const Decision* const decision = decision_about(hosted.block->version());
  if (decision == nullptr) return std::nullopt;
  const std::vector<WorkerId>& workers = hosted.block->sum().workers();
  const auto limit = hosted.block->version() == step_ ? deadline() : std::nullopt;
  std::optional<TimePoint> enough;
  uint32_t members = 0;
  for (size_t i = 0; i < workers.size(); ++i) {
    if (!members_.has(workers[i])) continue;
    ++members;
    const TimePoint at = hosted.contributed_at[i];
    // First: it may be the same one that is enough at the limit.
    if (limit && members == std::max(decision->at_least, 1u)) enough = std::max(at, *limit);
    if (members == decision->cutoff) return enough ? std::min(*enough, at + grace) : at + grace;
  }
  return enough;
}

// The first decision about a step is here: how long has a block that could have closed waited for
// it? Nothing, if the coordinator is quick.
void Shard::note_undecided(TimePoint now) {
  if (clocks_) return;
  Duration longest{};
  for (const auto& [id, hosted] : blocks_) {
    if (hosted.block->version() != decision_->step) continue;
    if (const auto since = enough_since(hosted, plan_->push_grace))
      longest = std::max(longest, now - *since);
  }
  // The whole step may be over: nobody needs a decision when everybody is there.
  if (longest > Duration::zero()) progress_of(decision_->step).undecided = longest;
}

void Shard::close_if_complete(Hosted& hosted, TimePoint now, Outbox& out) {
  if (may_close(hosted, now)) close(hosted, now, out);
}

void Shard::close(Hosted& hosted, TimePoint now, Outbox& out) {
  ShardBlock& block = *hosted.block;
  const Step step = block.version();
  Progress& progress = progress_of(step);
  if (clocks_) {
    progress.samples_min = std::min(progress.samples_min, block.round().samples);
    progress.gradients_min = std::min(progress.gradients_min, block.round().gradients);
    block.end_round(members_);
    serve_waiting(hosted, now, out);  // snapshots
    return close_step_if_done(now, out);
  }
  progress.samples_min = std::min(progress.samples_min, block.sum().samples());
  ++progress.counts[static_cast<uint32_t>(block.sum().contributors())];
  progress.noise += block.close(rate_of(step, block.sum().samples()), members_);
  hosted.contributed_at.clear();
  // Workers that need not wait for all blocks begin a step before the last of them has.
  if (plan_->weak) opened_.try_emplace(block.version(), now);
  serve_waiting(hosted, now, out);
  for (const Offer& late : offers_.withdraw_late(block.block().id, block.version())) {
    note_late(late.worker, late.step, now);
    answer(late.worker, late.step, hosted, Answer::kLate, out);
  }
  close_step_if_done(now, out);
  take_early(hosted, now, out);
  for (WorkerId worker = 0; worker < least_push_.size(); ++worker) {
    if (least_push_[worker] > block.version()) block.excuse(worker, members_);
  }
  // Who waits for all blocks is never ahead of one; others may have left several steps to close.
  if (plan_->weak) close_if_complete(hosted, now, out);
}

Status Shard::on_rate(WorkerId worker, const LearningRate& told) {
  if (told.from >= step_ + kRatesMax)
    return invalid_input("a learning rate for step " + std::to_string(told.from) +
                         ", which is far ahead");
  const auto [place, is_new] = rates_.try_emplace(told.from, Rate{worker, told.rate});
  if (!is_new && worker <= place->second.worker) place->second = {worker, told.rate};
  // What is in force now, and what comes after it.
  auto in_force = rates_.upper_bound(step_);
  if (in_force != rates_.begin()) rates_.erase(rates_.begin(), std::prev(in_force));
  return done();
}

double Shard::rate_of(Step step, uint64_t samples) const {
  const auto after = rates_.upper_bound(step);
  const double rate = after == rates_.begin() ? learning_rate(plan_->learning.schedule, step)
                                              : std::prev(after)->second.rate;
  return rate * rate_factor(plan_->learning.schedule.rule, static_cast<double>(samples),
                            static_cast<double>(plan_->full_samples),
                            decision_ ? decision_->noise_scale : 0.0);
}

void Shard::close_step_if_done(TimePoint now, Outbox& out) {
  const auto behind = [&](const auto& entry) { return entry.second.block->version() <= step_; };
  if (finished() || !open_ || std::any_of(blocks_.begin(), blocks_.end(), behind)) return;

  const Progress& progress = progress_of(step_);
  StepClosed closed;
  closed.step = step_;
  closed.elapsed = since_opening(step_, now);
  closed.undecided = progress.undecided;
  closed.closing = progress.undecided;  // whoever has a clock adds what the closing itself takes
  closed.refused = progress.refused;
  for (const auto& [worker, outlier] : progress.outliers) closed.outliers.push_back(outlier);
  closed.arrivals = take_arrivals(progress);
  for (const auto& [key, run_time] : late_)
    closed.late.push_back({key.second, run_time, key.first});
  late_.clear();
  if (!clocks_) note_stragglers(progress, closed);
  closed.samples = blocks_.empty() ? 0 : progress.samples_min;
  closed.gradients = clocks_ && !blocks_.empty() ? progress.gradients_min : 0;
  // Where workers run freely no two gradients are of the same parameters.
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  closed.signal = clocks_ ? kUnknown : progress.noise.signal;
  closed.noise = clocks_ ? kUnknown : progress.noise.noise;
  for (const auto& [contributors, blocks] : progress.counts)
    closed.block_counts.push_back({contributors, blocks});
  progress_.erase(step_);
  news_.clear();
  ++step_;
  decisions_.erase(decisions_.begin(), decisions_.lower_bound(step_));
  opened_.try_emplace(step_, now);
  if (opened_.size() > kOpeningsKept) opened_.erase(opened_.begin());
  const Step oldest = opened_.begin()->first;
  while (!straggling_.empty() && straggling_.begin()->first.first < oldest)
    straggling_.erase(straggling_.begin());
  if (step_ == plan_->steps) closed.digest = digest();
  if (plan_->standby || is_checkpoint(step_, plan_->checkpoint_every, plan_->steps))
    gather_checkpoint();
  out.push_back({to_coordinator(), control_frame(std::move(closed))});
}

// All blocks have come to version step_; some may be further on.
void Shard::gather_checkpoint() {
  CheckpointPart part{.shard = id_, .version = step_, .blocks = {}};
  for (auto& [id, hosted] : blocks_) {
    std::optional<SavedBlock> saved = hosted.block->take_saved(step_);
    DROVER_CHECK(saved.has_value());
    part.blocks.push_back(std::move(*saved));
  }
  checkpoints_.push_back(std::move(part));
}

std::optional<CheckpointPart> Shard::take_checkpoint() {
  if (checkpoints_.empty()) return std::nullopt;
  std::optional<CheckpointPart> next = std::move(checkpoints_.front());
  checkpoints_.pop_front();
  return next;
}

std::vector<StepClosed::Arrival> Shard::take_arrivals(const Progress& progress) {
  if (clocks_) return clocks_->take_arrivals(step_);
  std::vector<StepClosed::Arrival> arrivals;
  for (WorkerId worker = 0; worker < progress.blocks.size(); ++worker) {
    if (progress.blocks[worker] == blocks_.size())
      arrivals.push_back({worker, progress.run_time[worker], step_});
  }
  return arrivals;
}

// What comes of them later is told, with a later step, when it is whole. Of who is whole already
// (it was late for one block, or pushed before it was a member) the coordinator must not think that
// it took as long as the step.
void Shard::note_stragglers(const Progress& progress, StepClosed& closed) {
  for (const WorkerId worker : members_.list()) {
    if (progress.blocks[worker] == blocks_.size()) continue;
    const uint32_t seen = progress.blocks[worker] + progress.late[worker];
    if (seen < blocks_.size()) {
      straggling_[{step_, worker}] = seen;
    } else {
      late_[{step_, worker}] = progress.run_time[worker];
      closed.late.push_back({worker, progress.run_time[worker], step_});
    }
  }
}

// What the block says of the last push.
void Shard::note_outlier(WorkerId worker, Step step, const ShardBlock& block, Answer answer) {
  const std::optional<double>& ratio = block.out_of_line();
  if (!ratio || (answer != Answer::kAccepted && answer != Answer::kOutlier)) return;
  StepClosed::Outlier& outlier = progress_of(step).outliers[worker];
  outlier.worker = worker;
  ++outlier.blocks;
  outlier.used = answer == Answer::kAccepted && (outlier.used || outlier.blocks == 1);
  if (*ratio < outlier.ratio) return;
  outlier.ratio = *ratio;
  outlier.block = block.block().id;
}

void Shard::note_late(WorkerId worker, Step step, TimePoint now) {
  // A gradient has arrived when its last block has; until then its time is not known.
  if (step >= step_) {
    Progress& progress = progress_of(step);
    ++progress.late[worker];
    progress.run_time[worker] = since_opening(step, now);
    return;
  }
  const auto found = straggling_.find({step, worker});
  if (found == straggling_.end() || ++found->second < blocks_.size()) return;
  straggling_.erase(found);
  if (opened_.contains(step)) late_[{step, worker}] = since_opening(step, now);
}

// Whole, in the open step: whoever decides inside the step wants to know at once.
void Shard::note_arrival(WorkerId worker, Outbox& out) {
  news_.push_back({worker, progress_of(step_).run_time[worker], step_});
  tell_news(out);
}

void Shard::tell_news(Outbox& out) {
  if (!decision_ || decision_->step != step_ || decision_->news_every == 0) return;
  if (news_.size() < decision_->news_every) return;
  out.push_back(
      {to_coordinator(), control_frame(Arrived{.step = step_, .arrivals = std::move(news_)})});
  news_.clear();
}

// What a lost worker has begun to send it will not finish, and what its next life sends is another
// gradient.
void Shard::forget_late(WorkerId worker) {
  std::erase_if(straggling_, [&](const auto& entry) { return entry.first.second == worker; });
  for (auto& [step, progress] : progress_) progress.late[worker] = 0;
}

size_t Shard::pending() const {
  size_t all = offers_.pending() + opened_.size() + progress_.size() + straggling_.size();
  for (const auto& [id, hosted] : blocks_) all += hosted.waiting.size() + hosted.early.size();
  return all + late_.size() + decisions_.size() + rates_.size();
}

bool Shard::finished() const { return plan_ && step_ >= plan_->steps; }

Duration Shard::since_opening(Step step, TimePoint now) const {
  const auto found = opened_.find(step);
  return found == opened_.end() ? Duration::zero() : now - found->second;
}

Shard::Progress& Shard::progress_of(Step step) {
  Progress& progress = progress_[step];
  progress.blocks.resize(members_.size(), 0);
  progress.late.resize(members_.size(), 0);
  progress.run_time.resize(members_.size(), Duration::zero());
  return progress;
}

// A sum over all values with their places, so that it depends neither on which shard holds which
// block nor on where tensors are cut.
uint64_t Shard::digest() const {
  uint64_t sum = 0;
  for (const auto& [id, hosted] : blocks_) {
    uint64_t place = hosted.block->block().offset;
    for (const float value : hosted.block->parameters()->span()) {
      // Zeros do not count: between tensors that are one block, there are some.
      const auto bits = std::bit_cast<uint32_t>(value);
      if (bits != 0) sum += mix_bits(mix_bits(place) ^ bits);
      ++place;
    }
  }
  return sum;
}

}  // namespace drover
