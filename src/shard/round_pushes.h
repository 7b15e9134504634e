// RoundPushes: for one block of an asynchronous run, which pushes of each worker have arrived, and
// how many gradients were applied since the current version began.
//
// Each worker numbers its own gradients. A version of the block is a round of as many gradients as
// there are members.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/ids.h"

namespace drover {

class RoundPushes {
 public:
  explicit RoundPushes(uint32_t workers) : next_(workers, 0) {}

  // A new incarnation of the worker counts from 0 again.
  void on_joined(WorkerId worker) { next_[worker] = 0; }

  // Whether all of the worker's gradients before number `step` have arrived.
  bool has_all_before(Step step, WorkerId worker) const { return next_[worker] >= step; }
  // Gradient number `step` has arrived, used or not.
  void on_push(WorkerId worker, Step step) { next_[worker] = std::max(next_[worker], step + 1); }

  // A gradient was applied, or refused.
  void on_answered(bool applied, uint32_t samples) {
    ++answered_;
    if (!applied) return;
    ++gradients_;
    samples_ += samples;
  }
  void open_next() {
    answered_ = gradients_ = 0;
    samples_ = 0;
  }

  // The number of gradients of the round that were applied or refused.
  uint32_t answered() const { return answered_; }
  // The number of applied gradients, and their samples.
  uint32_t gradients() const { return gradients_; }
  uint64_t samples() const { return samples_; }

 private:
  std::vector<Step> next_;  // by worker: the lowest number that has not arrived
  uint32_t answered_ = 0;
  uint32_t gradients_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace drover
