// GradientIntake: checks the gradients of one block and sums up those of the next update.
//
// A gradient is refused if it is not finite. With a guard (shard/norm_guard.h), a gradient whose
// norm is far larger than typical is clipped or refused.
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

  // Adds a gradient, if it is usable. Returns kLate if the gradient is in the worker's memory and
  // the worker has overwritten it. REQUIRES: as GradientSum::add().
  Answer add(WorkerId worker, uint32_t samples, ConstBuffer gradient);

  // Forgets all gradients and takes in values, whatever the guard thinks of their norm.
  // REQUIRES: as GradientSum::add().
  Answer replace(WorkerId worker, ConstBuffer values);

  // The ratio of the last gradient's norm (or samples) to the typical one, if the gradient was an
  // outlier, used or not. Absent otherwise.
  const std::optional<double>& outlier_ratio() const { return outlier_ratio_; }

  const GradientSum& sum() const { return sum_; }
  // The noise of the gradients, given the squared norm of their mean.
  NoiseEstimate noise(double mean_square) const;
  // Forgets the gradients, after an update.
  void reset();

  // A step, or a round, has closed: its norms now count for the guard's bound.
  void learn(const Membership& members);
  // The worker is lost: its norms do not count for its next incarnation.
  void forget(WorkerId worker);
  // The state of the guard; empty without a guard.
  std::vector<float> save() const;
  void restore(const std::vector<float>& saved, const Membership& members);

 private:
  const GuardRule rule_;
  GradientSum sum_;
  double weighted_squares_ = 0.0;  // the sum over gradients of samples times squared norm
  std::optional<NormGuard> guard_;
  std::optional<double> outlier_ratio_;
};

}  // namespace drover
