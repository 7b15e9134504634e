#include "shard/shard_block.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "shard/kernels.h"

namespace drover {
namespace {

OptimizerSettings optimizer_of(const Plan& plan, const Block& block) {
  OptimizerSettings settings = plan.learning.optimizer;
  const TensorSpec& tensor = plan.tensors.at(block.tensor);
  settings.weight_decay *= tensor.decay;
  // Its own settings come with the step: until then nothing is kept for those of the run.
  if (tensor.group > 0) settings.kind = OptimizerKind::kSgd;
  return settings;
}

}  // namespace

ShardBlock::ShardBlock(const Block& block, const Plan& plan, BufferPool* pool,
                       BufferPool* published)
    : block_(block),
      steps_(plan.steps),
      pool_(pool),
      published_(published),
      intake_(block, plan, pool),
      group_(plan.tensors.at(block.tensor).group),
      rate_(plan.tensors.at(block.tensor).rate),
      optimizer_(optimizer_of(plan, block), block.kind, block.length),
      copies_(plan) {}

void ShardBlock::start(std::span<const float> initial) {
  DROVER_CHECK(!started());
  DROVER_CHECK(initial.size() == block_.length);
  SharedBuffer first = published_->take(block_.length);
  std::copy(initial.begin(), initial.end(), first->data());
  optimizer_.start(first->span());
  parameters_ = std::move(first);
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
  intake_.restore(saved.lengths, members);
  // Earlier snapshots are not restored, but the evaluator needs one.
  keep_snapshot();
}

Answer ShardBlock::add_values(WorkerId worker, ConstBuffer values) {
  if (values_of_ && *values_of_ <= worker) return Answer::kAccepted;
  const Answer answer = intake_.replace(worker, std::move(values));
  if (answer == Answer::kAccepted) values_of_ = worker;
  return answer;
}

void ShardBlock::forget_gradients() {
  intake_.reset();
  values_of_.reset();
}

ShardBlock::Norm ShardBlock::norm() const {
  Norm norm;
  const GradientSum& sum = intake_.sum();
  if (sum.contributors() == 0) return norm;
  std::array<float, kScaledMax> mean;
  for (size_t begin = 0; begin < block_.length; begin += mean.size()) {
    const std::span<float> part(mean.data(), std::min(mean.size(), block_.length - begin));
    sum.write_mean(begin, part);
    norm.squares += sum_of_squares(part);
    for (const float value : part)
      norm.largest = std::max(norm.largest, static_cast<double>(std::abs(value)));
  }
  return norm;
}

NoiseEstimate ShardBlock::publish(double learning_rate, const OptimizerSettings* own,
                                  double scale) {
  DROVER_CHECK(collects());
  SharedBuffer next = published_->take(block_.length);
  NoiseEstimate estimate;
  if (values_of_) {
    for (size_t begin = 0; begin < block_.length; begin += kScaledMax)
      intake_.sum().write_mean(
          begin, next->span().subspan(begin, std::min(kScaledMax, block_.length - begin)));
  } else {
    if (own != nullptr && intake_.sum().contributors() > 0) optimizer_.use(*own);
    const double mean_square = optimizer_.apply(intake_.sum(), learning_rate * rate_,
                                                parameters_->span(), next->span(), scale);
    if (block_.kind == TensorKind::kTrained) estimate = intake_.noise(mean_square);
  }
  parameters_ = std::move(next);
  forget_gradients();
  return estimate;
}

void ShardBlock::next_version(const Membership& members) {
  intake_.learn(members);
  ++version_;
  if (copies_.snapshot_due(version_)) keep_snapshot();
  if (copies_.save_due(version_)) copies_.keep_saved(version_, saved());
}

void ShardBlock::keep_snapshot() {
  ConstBuffer values = parameters_;
  if (const auto averaged = optimizer_.averaged(); !averaged.empty()) {
    SharedBuffer copy = pool_->take(block_.length);
    std::copy(averaged.begin(), averaged.end(), copy->data());
    values = std::move(copy);
  }
  copies_.keep_snapshot(version_, std::move(values));
}

// Published parameters never change, so they are shared. The optimiser's state is copied.
SavedBlock ShardBlock::saved() const {
  SavedBlock saved{.offset = block_.offset, .length = block_.length, .parameters = parameters_};
  optimizer_.save(saved, *pool_);
  saved.lengths = intake_.save();
  return saved;
}

}  // namespace drover
