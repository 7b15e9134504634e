// HeldBlocks: the blocks of a shard that close in the open step only when a worker has said how
// (Release), because their gradients are clipped by the norm over all shards.
//
// A block with such pushes freezes when it has all that it waits for: it takes no more gradients,
// and the norm of its mean counts. When all are frozen the workers are notified.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "core/ids.h"
#include "wire/control.h"

namespace drover {

class HeldBlocks {
 public:
  // Whether a worker that holds so many blocks of this shard holds as many as the others do.
  bool agrees(uint32_t count) const { return held_.empty() || count == count_; }

  // A push for the block was taken, whose worker holds `count` blocks. REQUIRES: agrees(count).
  void hold(size_t block, uint32_t count) {
    count_ = count;
    held_.insert(block);
  }
  bool holds(size_t block) const { return held_.contains(block); }

  // The block has all that it waits for. REQUIRES: holds(block).
  void freeze(size_t block, double squares, double largest) {
    frozen_.insert(block);
    squares_ += squares;
    largest_ = std::max(largest_, largest);
  }
  bool is_frozen(size_t block) const { return frozen_.contains(block); }

  bool any_frozen() const { return !frozen_.empty(); }
  // All blocks that workers hold are frozen.
  bool complete() const { return any_frozen() && frozen_.size() >= count_; }
  // Of their mean gradients together.
  GradientNorm norm(Step step) const {
    return {.step = step, .squares = squares_, .largest = largest_};
  }

  // Forgets everything and returns the blocks that were frozen.
  std::set<size_t> take() { return std::exchange(*this, {}).frozen_; }

 private:
  std::set<size_t> held_;
  std::set<size_t> frozen_;
  uint32_t count_ = 0;
  double squares_ = 0.0;
  double largest_ = 0.0;
};

}  // namespace drover
