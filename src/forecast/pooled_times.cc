#include "forecast/pooled_times.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/check.h"

namespace drover {
namespace {

// The leading bits of a positive float, its exponent and six bits of mantissa, approximate its
// logarithm.
constexpr unsigned kDroppedBits = 23 - 6;
constexpr size_t kBins = size_t{1} << (31 - kDroppedBits);
// Instead of old weights shrinking, new weights grow; at this exponent, all are scaled back.
constexpr double kMaxExponent = 256.0;

}  // namespace

PooledTimes::PooledTimes(double half_life)
    : half_life_(half_life), happened_(kBins), cut_short_(kBins), first_(kBins) {
  DROVER_CHECK(half_life > 0.0);
}

PooledTimes::Bin& PooledTimes::bin_of(float time, bool censored) {
  DROVER_CHECK(time > 0.0F);
  const size_t index = std::bit_cast<uint32_t>(time) >> kDroppedBits;
  first_ = std::min(first_, index);
  end_ = std::max(end_, index + 1);
  return (censored ? cut_short_ : happened_)[index];
}

double PooledTimes::weight_of(Step step) {
  if (weight_ > 0.0 && step == weighed_) return weight_;  // common: many workers of one step
  const auto age = static_cast<double>(step) - static_cast<double>(origin_);
  double exponent = age / half_life_;
  if (exponent > kMaxExponent) {
    const double scale = std::exp2(-exponent);
    for (std::vector<Bin>* bins : {&happened_, &cut_short_}) {
      for (size_t i = first_; i < end_; ++i) {
        (*bins)[i].weight *= scale;
        (*bins)[i].moment *= scale;
      }
    }
    origin_ = step;
    exponent = 0.0;
  }
  weighed_ = step;
  weight_ = std::exp2(exponent);
  return weight_;
}

void PooledTimes::add(Step step, float time, bool censored) {
  const double weight = weight_of(step);
  Bin& bin = bin_of(time, censored);
  bin.weight += weight;
  bin.moment += weight * double{time};
  ++bin.count;
  stale_ = true;
}

void PooledTimes::remove(Step step, float time, bool censored) {
  const double weight = weight_of(step);
  Bin& bin = bin_of(time, censored);
  DROVER_CHECK(bin.count > 0);
  if (--bin.count == 0) {
    bin = Bin{};
  } else {
    bin.weight = std::max(0.0, bin.weight - weight);
    bin.moment = std::max(0.0, bin.moment - weight * double{time});
  }
  stale_ = true;
}

const SurvivalCurve& PooledTimes::curve() {
  if (!stale_) return curve_;
  stale_ = false;
  observations_.clear();
  for (size_t i = first_; i < end_; ++i) {
    // A smaller weight has no meaningful mean: it has decayed, or rounding left it after a removal.
    constexpr double kLeast = 1e-280;
    const auto observation = [](const Bin& bin, bool censored) {
      return Observation{bin.moment / bin.weight, censored, bin.weight};
    };
    const bool happened = happened_[i].weight > kLeast;
    const bool cut_short = cut_short_[i].weight > kLeast;
    if (happened) observations_.push_back(observation(happened_[i], false));
    if (cut_short) observations_.push_back(observation(cut_short_[i], true));
    const size_t size = observations_.size();
    if (happened && cut_short && observations_[size - 1].time < observations_[size - 2].time) {
      std::swap(observations_[size - 1], observations_[size - 2]);
    }
  }
  curve_.fit(observations_);
  return curve_;
}

}  // namespace drover
