#include "shard/shard_block.h"

#include <algorithm>
#include <utility>

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
      pool_(pool),
      published_(published),
      intake_(block, plan, pool),
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

NoiseEstimate ShardBlock::publish(double learning_rate) {
  DROVER_CHECK(collects());
  SharedBuffer next = published_->take(block_.length);
  const double mean_square =
      optimizer_.apply(intake_.sum(), learning_rate * rate_, parameters_->span(), next->span());
  const NoiseEstimate estimate =
      block_.kind == TensorKind::kTrained ? intake_.noise(mean_square) : NoiseEstimate{};
  parameters_ = std::move(next);
  intake_.reset();
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
