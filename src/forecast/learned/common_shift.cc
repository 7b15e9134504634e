#include "forecast/learned/common_shift.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "forecast/run_time.h"

namespace drover {
namespace {

constexpr uint32_t kEnough = 8;

}  // namespace

void CommonShift::learn(std::span<const float> predicted, double happened) {
  DROVER_CHECK(!predicted.empty());
  double sum = 0.0;
  double squares = 0.0;
  for (const float sample : predicted) {
    const double value = std::log(static_cast<double>(sample));
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(predicted.size());
  const double mean = sum / count;
  off_[next_] = std::log(happened) - mean;
  expected_[next_] = std::max(0.0, squares / count - mean * mean);
  next_ = (next_ + 1) % kKept;
  count_ = std::min(count_ + 1, kKept);
}

double CommonShift::missing() const {
  if (count_ < kEnough) return 0.0;
  double seen = 0.0;
  double expected = 0.0;
  for (uint32_t i = 0; i < count_; ++i) {
    seen += off_[i] * off_[i];
    expected += expected_[i];
  }
  return seen > expected ? std::sqrt(1.0 - expected / seen) : 0.0;
}

void CommonShift::apply(Forecast& forecast, uint32_t begin, uint32_t end, DrawStream draws) const {
  const double share = missing();
  if (share == 0.0) return;
  // Uses the recorded deviations in turn, beginning with a random one.
  uint32_t next = draws.below(count_);
  for (uint32_t k = begin; k < end; ++k) {
    const double factor = std::exp(share * off_[next]);
    next = (next + 1) % count_;
    for (float& time : forecast.row(k)) time = to_run_time(factor * static_cast<double>(time));
  }
}

}  // namespace drover
