#include "shard/gradient_intake.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace drover {

GradientIntake::GradientIntake(const Block& block, const Plan& plan, BufferPool* pool)
    : rule_(plan.learning.guard),
      sum_(plan.learning.deterministic ? SumOrder::kWorker : SumOrder::kArrival, block.length,
           pool) {
  // Blocks that are averaged hold values, not gradients: their norms need no guard.
  if (rule_ != GuardRule::kOff && block.kind == TensorKind::kTrained)
    guard_.emplace(plan.workers, plan.learning.guard_factor);
}

Answer GradientIntake::add(WorkerId worker, uint32_t samples, ConstBuffer gradient) {
  outlier_ratio_.reset();
  const NormGuard::Bound bound = guard_ ? guard_->bound() : NormGuard::Bound{};
  const bool clips = rule_ == GuardRule::kNorm;
  const bool too_heavy = static_cast<double>(samples) > bound.most_samples;
  NormLimit limit;
  if (bound.typical > 0.0)
    limit = {.squares = bound.most * bound.most, .clip_to = clips ? bound.typical : 0.0};
  if (too_heavy && !clips) limit.squares = -1.0;  // refused at any norm
  const uint32_t weight = too_heavy ? bound.typical_samples : samples;
  const auto squares = sum_.add(worker, weight, std::move(gradient), limit);
  if (!squares) return Answer::kLate;
  if (!std::isfinite(*squares)) return Answer::kNotFinite;
  if (guard_) guard_->note(worker, *squares, samples);
  const bool too_long = *squares > limit.squares;
  if (too_long || too_heavy) {
    const double heavier = too_heavy ? static_cast<double>(samples) / bound.typical_samples : 0.0;
    outlier_ratio_ = std::max(std::sqrt(*squares) / bound.typical, heavier);
    if (!clips) return Answer::kOutlier;
  }
  const double used = too_long ? limit.clip_to * limit.clip_to : *squares;
  weighted_squares_ += static_cast<double>(weight) * used;
  return Answer::kAccepted;
}

Answer GradientIntake::replace(WorkerId worker, ConstBuffer values) {
  reset();
  const auto squares = sum_.add(worker, 1, std::move(values));
  if (!squares) return Answer::kLate;
  return std::isfinite(*squares) ? Answer::kAccepted : Answer::kNotFinite;
}

NoiseEstimate GradientIntake::noise(double mean_square) const {
  return estimate_noise(weighted_squares_, mean_square, sum_.samples(), sum_.contributors());
}

void GradientIntake::reset() {
  sum_.reset();
  weighted_squares_ = 0.0;
}

void GradientIntake::learn(const Membership& members) {
  if (guard_) guard_->learn(members);
}

void GradientIntake::forget(WorkerId worker) {
  if (guard_) guard_->forget(worker);
}

std::vector<float> GradientIntake::save() const {
  return guard_ ? guard_->save() : std::vector<float>{};
}

void GradientIntake::restore(const std::vector<float>& saved, const Membership& members) {
  if (guard_) guard_->restore(saved, members);
}

}  // namespace drover
