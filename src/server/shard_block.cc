#include "server/shard_block.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace drover {
namespace {

OptimizerSettings optimizer_of(const Plan& plan, const Block& block) {
  OptimizerSettings settings = plan.learning.optimizer;
  settings.weight_decay *= plan.tensors.at(block.tensor).decay;
  return settings;
}

}  // namespace

ShardBlock::ShardBlock(const Block& block, const Plan& plan, BufferPool* pool,
                       BufferPool* published)
    : block_(block),
      steps_(plan.steps),
      evaluate_every_(plan.evaluate_every),
      checkpoint_every_(plan.checkpoint_every),
      standby_(plan.standby),
      free_running_(plan.free_running),
      rule_(plan.learning.guard),
      pool_(pool),
      published_(published),
      sum_(plan.learning.deterministic ? SumOrder::kWorker : SumOrder::kArrival, block.length,
           pool),
      rate_(plan.tensors.at(block.tensor).rate),
      optimizer_(optimizer_of(plan, block), block.kind, block.length),
      pushes_(plan.workers, Push::kOwed),
      next_push_(plan.workers, 0) {
  // What is averaged is no gradient: how long it is says nothing.
  if (rule_ != GuardRule::kOff && block.kind == TensorKind::kTrained)
    guard_.emplace(plan.workers, plan.learning.guard_factor);
}

void ShardBlock::start(std::span<const float> initial, const Membership& members) {
  DROVER_CHECK(!started());
  DROVER_CHECK(initial.size() == block_.length);
  SharedBuffer first = published_->take(block_.length);
  std::copy(initial.begin(), initial.end(), first->data());
  optimizer_.start(first->span());
  parameters_ = std::move(first);
  on_members_changed(members);
}

void ShardBlock::restore(const SavedBlock& saved, Version version, const Membership& members) {
  DROVER_CHECK(!started());
  DROVER_CHECK(saved.offset == block_.offset && saved.length == block_.length);
  DROVER_CHECK(saved.parameters && saved.parameters->size() == block_.length);
  SharedBuffer first = published_->take(block_.length);
  std::copy_n(saved.parameters->data(), block_.length, first->data());
  optimizer_.restore(saved);
  parameters_ = std::move(first);
  version_ = version;
  if (guard_) guard_->restore(saved.lengths, members);
  // Whoever evaluates finds nothing of before, but should find something.
  keep_snapshot();
  on_members_changed(members);
}

Answer ShardBlock::judge(Step step, WorkerId worker) const {
  if (free_running_) {
    if (step < next_push_[worker]) return Answer::kDuplicate;
    return finished() ? Answer::kLate : Answer::kAccepted;
  }
  if (step < version_ || finished()) return Answer::kLate;
  if (pushes_[worker] == Push::kAnswered) return Answer::kDuplicate;
  return Answer::kAccepted;
}

Answer ShardBlock::push(Step step, WorkerId worker, uint32_t samples, ConstBuffer gradient,
                        const Membership& members) {
  const Answer answer = judge(step, worker);
  if (answer != Answer::kAccepted) return answer;
  if (members.has(worker) && is_missing(worker)) --missing_;
  pushes_[worker] = Push::kAnswered;
  const Answer added = add(worker, samples, std::move(gradient));
  // Its worker has gone on to another step, as if it had withdrawn the offer.
  if (added == Answer::kLate) pushes_[worker] = Push::kExcused;
  if (added == Answer::kAccepted && members.has(worker)) ++contributed_;
  return added;
}

// To the sum, if it can be. Whoever is refused owes nothing more: it cannot hold up a step.
Answer ShardBlock::add(WorkerId worker, uint32_t samples, ConstBuffer gradient) {
  out_of_line_.reset();
  const NormGuard::Bound bound = guard_ ? guard_->bound() : NormGuard::Bound{};
  const bool shortens = rule_ == GuardRule::kNorm;
  const bool too_heavy = static_cast<double>(samples) > bound.most_samples;
  LengthLimit limit;
  if (bound.usual > 0.0)
    limit = {.squares = bound.most * bound.most, .shorten_to = shortens ? bound.usual : 0.0};
  if (too_heavy && !shortens) limit.squares = -1.0;  // however short it is
  const uint32_t weight = too_heavy ? bound.usual_samples : samples;
  const auto squares = sum_.add(worker, weight, std::move(gradient), limit);
  if (!squares) return Answer::kLate;
  if (!std::isfinite(*squares)) return Answer::kNotFinite;
  if (guard_) guard_->note(worker, *squares, samples);
  const bool too_long = *squares > limit.squares;
  if (too_long || too_heavy) {
    const double heavier = too_heavy ? static_cast<double>(samples) / bound.usual_samples : 0.0;
    out_of_line_ = std::max(std::sqrt(*squares) / bound.usual, heavier);
    if (!shortens) return Answer::kOutlier;
  }
  const double used = too_long ? limit.shorten_to * limit.shorten_to : *squares;
  weighted_squares_ += static_cast<double>(weight) * used;
  return Answer::kAccepted;
}

void ShardBlock::expect(WorkerId worker) {
  if (pushes_[worker] == Push::kOwed) pushes_[worker] = Push::kExpected;
}

void ShardBlock::stop_expecting(WorkerId worker) {
  if (pushes_[worker] == Push::kExpected) pushes_[worker] = Push::kOwed;
}

void ShardBlock::withdraw(WorkerId worker, const Membership& members) {
  if (pushes_[worker] != Push::kExpected) return;
  pushes_[worker] = Push::kExcused;
  if (members.has(worker)) --missing_;
}

void ShardBlock::excuse(WorkerId worker, const Membership& members) {
  if (pushes_[worker] != Push::kOwed) return;
  pushes_[worker] = Push::kExcused;
  if (members.has(worker)) --missing_;
}

void ShardBlock::on_members_changed(const Membership& members) {
  missing_ = 0;
  for (WorkerId worker = 0; worker < pushes_.size(); ++worker) {
    if (members.has(worker) && is_missing(worker)) ++missing_;
  }
  // What somebody lost has delivered is used, but must not crowd out those who are alive.
  contributed_ =
      static_cast<uint32_t>(std::count_if(sum_.workers().begin(), sum_.workers().end(),
                                          [&](WorkerId worker) { return members.has(worker); }));
}

bool ShardBlock::complete(uint32_t cutoff) const {
  return started() && !finished() && (contributed_ >= cutoff || missing_ == 0);
}

NoiseEstimate ShardBlock::close(double learning_rate, const Membership& members) {
  const NoiseEstimate estimate = publish(learning_rate);
  if (guard_) guard_->learn(members);
  contributed_ = 0;
  std::fill(pushes_.begin(), pushes_.end(), Push::kOwed);
  missing_ = members.count();
  next_version();
  return estimate;
}

Answer ShardBlock::apply(Step step, WorkerId worker, uint32_t samples, ConstBuffer gradient,
                         double learning_rate) {
  const Answer answer = judge(step, worker);
  if (answer != Answer::kAccepted) return answer;
  pass_over(step, worker);
  ++round_.answered;
  const Answer added = add(worker, samples, std::move(gradient));
  if (added != Answer::kAccepted) return added;
  publish(learning_rate);
  ++round_.gradients;
  round_.samples += samples;
  return Answer::kAccepted;
}

void ShardBlock::pass_over(Step step, WorkerId worker) {
  next_push_[worker] = std::max(next_push_[worker], step + 1);
}

void ShardBlock::end_round(const Membership& members) {
  if (guard_) guard_->learn(members);
  round_ = {};
  next_version();
}

NoiseEstimate ShardBlock::publish(double learning_rate) {
  DROVER_CHECK(started());
  DROVER_CHECK(!finished());
  SharedBuffer next = published_->take(block_.length);
  const double mean_square =
      optimizer_.apply(sum_, learning_rate * rate_, parameters_->span(), next->span());
  const NoiseEstimate estimate =
      block_.kind == TensorKind::kTrained
          ? estimate_noise(weighted_squares_, mean_square, sum_.samples(), sum_.contributors())
          : NoiseEstimate{};
  parameters_ = std::move(next);
  sum_.reset();
  weighted_squares_ = 0.0;
  return estimate;
}

void ShardBlock::next_version() {
  ++version_;
  if (snapshot_due()) keep_snapshot();
  if (standby_ || is_checkpoint(version_, checkpoint_every_, steps_)) saved_[version_] = saved();
}

bool ShardBlock::snapshot_due() const {
  return finished() || (evaluate_every_ > 0 && version_ % evaluate_every_ == 0);
}

void ShardBlock::keep_snapshot() {
  ConstBuffer values = parameters_;
  if (const auto averaged = optimizer_.averaged(); !averaged.empty()) {
    SharedBuffer copy = pool_->take(block_.length);
    std::copy(averaged.begin(), averaged.end(), copy->data());
    values = std::move(copy);
  }
  snapshots_[0] = std::move(snapshots_[1]);
  snapshots_[1] = {version_, std::move(values)};
}

// Parameters never change once they are published; what the optimiser remembers does.
SavedBlock ShardBlock::saved() const {
  SavedBlock saved{.offset = block_.offset, .length = block_.length, .parameters = parameters_};
  optimizer_.save(saved, *pool_);
  if (guard_) saved.lengths = guard_->save();
  return saved;
}

std::optional<SavedBlock> ShardBlock::take_saved(Version version) {
  const auto found = saved_.find(version);
  if (found == saved_.end()) return std::nullopt;
  std::optional<SavedBlock> taken = std::move(found->second);
  saved_.erase(found);
  return taken;
}

ConstBuffer ShardBlock::snapshot(Version version) const {
  for (const Snapshot& each : snapshots_) {
    if (each.values && each.version == version) return each.values;
  }
  return nullptr;
}

Version ShardBlock::newest_snapshot() const {
  return snapshots_[1].values ? snapshots_[1].version : 0;
}

}  // namespace drover
