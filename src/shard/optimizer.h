// BlockOptimizer: turns the mean gradient of a step into the next version of one block.
//
// The formulas are those of PyTorch's torch.optim, with p the parameters, g the mean gradient, lr
// the learning rate, wd the weight decay and t = 1, 2, ... the number of this block's update:
//
//   SGD       g += wd p;  p -= lr g
//   momentum  g += wd p;  b = mu b + g;  p -= lr b
//   Nesterov  g += wd p;  b = mu b + g;  p -= lr (g + mu b)
//   RMSProp   g += wd p;  v = a v + (1 - a) g^2;  d = g / (sqrt(v) + eps)
//             p -= lr d;  or with momentum:  b = mu b + d;  p -= lr b
//   Adam      g += wd p;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//             p -= lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)
//   AdamW     p -= lr wd p;  then as Adam with wd = 0
//
// b, m and v start at zero, so that the first b is the first gradient.
//
// Blocks that are averaged rather than trained (TensorKind::kAveraged) become the mean itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/checkpoint_part.h"
#include "core/float_buffer.h"
#include "core/layout.h"
#include "core/training.h"
#include "shard/gradient_sum.h"

namespace drover {

class BlockOptimizer {
 public:
  BlockOptimizer(const OptimizerSettings& settings, TensorKind kind, size_t length);

  // The block's initial parameters, from which its moving average starts. Call once, before
  // apply().
  void start(std::span<const float> initial);

  // Instead of start(), in a run that continues: restores the state that save() has written.
  // REQUIRES: `saved` has all state of this optimiser, and was saved with the same settings.
  void restore(const SavedBlock& saved);
  // Adds copies of the optimiser's state to `saved`.
  void save(SavedBlock& saved, BufferPool& pool) const;

  // From the next update on. Momentum and squares stay, or start at zero where there were none.
  // The decay of the moving average is not changed.
  void use(const OptimizerSettings& settings);

  // Writes the block's next version to `next` in one pass over memory. `now` stays unchanged, since
  // it may still be on its way to workers. Without a contribution the next version is a copy, and
  // no state changes: neither momentum, nor the number of updates, nor the moving average. The mean
  // gradient is multiplied by `scale` before it is used. Returns |g|^2 of the mean gradient of a
  // trained block with two or more contributions (see gradient_noise.h); otherwise 0.
  // REQUIRES: all have the block's length; `next` does not overlap `now`.
  double apply(const GradientSum& sum, double learning_rate, std::span<const float> now,
               std::span<float> next, double scale = 1.0);

  // The moving average of the parameters, which is what should be evaluated:
  //
  //   average += (1 - d_t) (p - average),   d_t = min(decay, (1 + t) / (10 + t))
  //
  // The second bound is TensorFlow's: it keeps short runs from being dominated by the initial
  // values. Empty if the parameters themselves should be evaluated: when ema_decay is 0, and for
  // averaged blocks, which are smooth already.
  std::span<const float> averaged() const { return average_.span(); }

  // Updates made so far: t above.
  uint64_t updates() const { return updates_; }

 private:
  void average(const GradientSum& sum, std::span<float> next) const;

  void allocate_state();

  OptimizerSettings settings_;
  TensorKind kind_;
  size_t length_;
  uint64_t updates_ = 0;
  double beta1_power_ = 1.0;  // b1^t, by multiplication: pow() differs between C libraries
  double beta2_power_ = 1.0;
  FloatBuffer momentum_{0};  // b or m; empty if the kind has none, like those below
  FloatBuffer squares_{0};   // v
  FloatBuffer average_;
  bool started_ = false;
};

}  // namespace drover
