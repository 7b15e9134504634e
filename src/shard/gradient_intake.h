// GradientIntake: the gradients of one block that are in the next update, and which of those that
// come may be in it.
//
// A gradient is refused if it is not finite. With a guard (shard/norm_guard.h), one that is far
// larger than usual is clipped or refused.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/float_buffer.h"
#include "core/gradient_noise.h"
#include "core/ids.h"
#include "core/layout.h"
#include "core/learning_rules.h"
#include "core/membership.h"
#include "shard/gradient_sum.h"
#include "shard/norm_guard.h"
#include "wire/control.h"
#include "wire/header.h"

namespace drover {

class GradientIntake {
 public:
  // `pool` must outlive this.
  GradientIntake(const Block& block, const Plan& plan, BufferPool* pool);

  // Takes a gradient in, if it can be used. kLate if it lies in memory of its worker, which has
  // overwritten it meanwhile. REQUIRES: as GradientSum::add().
  Answer add(WorkerId worker, uint32_t samples, ConstBuffer gradient);

  // How many times as large as usual the last gradient was, if it was out of line, used or not.
  const std::optional<double>& outlier_ratio() const { return outlier_ratio_; }

  const GradientSum& sum() const { return sum_; }
  // What the gradients say about noise, when the square of their mean is `mean_square`.
  NoiseEstimate noise(double mean_square) const;
  // The update is made: forgets the gradients.
  void reset();

  // A step, or a round, has closed: what the guard saw in it counts from now on.
  void learn(const Membership& members);
  // The worker is lost: what comes under its name is another's.
  void forget(WorkerId worker);
  // What the guard remembers; empty if there is none.
  std::vector<float> save() const;
  void restore(const std::vector<float>& saved, const Membership& members);

 private:
  const GuardRule rule_;
  GradientSum sum_;
  double weighted_squares_ = 0.0;  // of the gradients in it: samples times squared length, summed
  std::optional<NormGuard> guard_;
  std::optional<double> outlier_ratio_;
};

}  // namespace drover
