#include "experiment/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/check.h"
#include "core/quantile.h"
#include "core/random_draw.h"

namespace drover {
namespace {

constexpr uint64_t kResamples = 10'000;

}  // namespace

double mean_of(std::span<const double> values) {
  DROVER_CHECK(!values.empty());
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<Interval> bootstrap_mean(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const auto count = static_cast<double>(values.size());
  std::vector<double> means;
  for (uint64_t resample = 0; resample < kResamples; ++resample) {
    double sum = 0.0;
    for (uint64_t i = 0; i < values.size(); ++i) {
      const double where =
          unit_interval(draw({static_cast<uint64_t>(Purpose::kBootstrap), resample, i}));
      sum += values[static_cast<size_t>(where * count)];
    }
    means.push_back(sum / count);
  }
  return Interval{quantile(means, 0.025), quantile(means, 0.975)};
}

}  // namespace drover
