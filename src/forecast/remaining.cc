#include "forecast/remaining.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace drover {
namespace {

// Reviews inside a step are frequent, so they use fewer samples than the decision before it.
constexpr uint32_t kSamples = 64;
constexpr size_t kExcesses = 1024;
// The weight of other workers' samples, in samples of the worker's own.
constexpr uint32_t kOthers = 4;

}  // namespace

void Remaining::start(const Forecast& forecast) {
  DROVER_CHECK(forecast.samples > 0 && forecast.workers > 0);
  // Rows may come in groups, one per forecaster: the stride takes some of each.
  const uint32_t stride = (forecast.samples + kSamples - 1) / kSamples;
  const uint32_t samples = (forecast.samples + stride - 1) / stride;
  forecast_.resize(samples, forecast.workers);
  for (uint32_t k = 0; k < samples; ++k) {
    const std::span<const float> row = forecast.row(k * stride);
    std::copy(row.begin(), row.end(), forecast_.row(k).begin());
  }
  find_medians();
}

void Remaining::find_medians() {
  medians_.clear();
  column_.resize(forecast_.samples);
  const auto middle = column_.begin() + forecast_.samples / 2;
  for (uint32_t i = 0; i < forecast_.workers; ++i) {
    for (uint32_t k = 0; k < forecast_.samples; ++k) column_[k] = forecast_.row(k)[i];
    std::nth_element(column_.begin(), middle, column_.end());
    medians_.push_back(*middle);
  }
  excesses_.clear();
  const size_t all = forecast_.times.size();
  size_t stride = std::max<size_t>(1, all / kExcesses);
  if (stride > 1 && forecast_.workers % stride == 0) ++stride;  // so that all workers are sampled
  for (size_t at = 0; at < all; at += stride) {
    excesses_.push_back(forecast_.times[at] / medians_[at % forecast_.workers]);
  }
  std::sort(excesses_.begin(), excesses_.end());
}

void Remaining::weigh(const std::vector<bool>& arrived, float now) {
  const uint32_t samples = forecast_.samples;
  weights_.resize(samples);
  double sum = 0.0;
  double squares = 0.0;
  double least = std::numeric_limits<double>::infinity();
  for (uint32_t k = 0; k < samples; ++k) {
    const float* const row = forecast_.row(k).data();
    uint32_t other = 0;
    for (size_t i = 0; i < arrived.size(); ++i) other += (row[i] <= now) != arrived[i] ? 1 : 0;
    weights_[k] = other;
    sum += weights_[k];
    squares += weights_[k] * weights_[k];
    least = std::min(least, weights_[k]);
  }
  const double mean = sum / samples;
  const double deviation = std::sqrt(std::max(0.0, squares / samples - mean * mean));
  const double temper = std::max(1.0, deviation);
  double all = 0.0;
  for (double& weight : weights_) {
    weight = std::exp(-(weight - least) / temper);
    all += weight;
  }
  for (double& weight : weights_) weight /= all;
}

// A time later than now: one of column_, the worker's own late samples, or one from another
// worker's excess.
float Remaining::beyond(uint32_t column, float now, DrawStream& draws) {
  const auto own = static_cast<uint32_t>(column_.size());
  const auto first = std::upper_bound(excesses_.begin(), excesses_.end(), now / medians_[column]);
  const auto others = static_cast<uint32_t>(excesses_.end() - first);
  const uint32_t choice = own + (others > 0 ? kOthers : 0);
  if (choice == 0) return kNever;
  const uint32_t pick = draws.below(choice);
  if (pick < own) return column_[pick];
  const float time = medians_[column] * first[draws.below(others)];
  return time > now ? time : std::nextafter(now, kNever);  // rounding
}

void Remaining::condition(const std::vector<bool>& arrived, double now, DrawStream draws,
                          double stretch) {
  DROVER_CHECK(arrived.size() == forecast_.workers);
  // Stretching all times is the same as reviewing the unstretched forecast earlier.
  const auto limit = static_cast<float>(now / stretch);
  const auto factor = static_cast<float>(stretch);
  missing_.clear();
  for (uint32_t i = 0; i < forecast_.workers; ++i) {
    if (!arrived[i]) missing_.push_back(i);
  }
  weigh(arrived, limit);
  const size_t width = missing_.size();
  times_.resize(forecast_.samples * width);
  for (size_t j = 0; j < width; ++j) {
    const uint32_t column = missing_[j];
    column_.clear();
    for (uint32_t k = 0; k < forecast_.samples; ++k) {
      if (const float time = forecast_.row(k)[column]; time > limit) column_.push_back(time);
    }
    for (uint32_t k = 0; k < forecast_.samples; ++k) {
      const float time = forecast_.row(k)[column];
      times_[k * width + j] = factor * (time > limit ? time : beyond(column, limit, draws));
    }
  }
}

}  // namespace drover
