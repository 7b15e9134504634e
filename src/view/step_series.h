// The course of a run: stretches of steps with their means and sums, never more than a page can
// show.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "core/run_record.h"
#include "view/buckets.h"
#include "view/step_facts.h"

namespace drover {

inline constexpr size_t kStepBuckets = 1000;

// The mean of the values that are known.
struct Mean {
  double sum = 0.0;
  uint64_t count = 0;
  void add(double value);  // NaN: unknown
  void merge(const Mean& other);
  double value() const { return count > 0 ? sum / static_cast<double>(count) : kUnknown; }
};

// Quantities of which a stretch of steps has the mean.
enum class StepMean : uint8_t {
  kElapsed,
  kCutoff,
  kAlive,
  kContributors,
  kOracle,
  kLoss,
  kAccuracy,
  kSamples,
  kLearningRate,
  kNoiseScale,
  kFresh,
  kComputing,
  kMoving,
  kWaiting,
  kAggregating,
  kDeciding,
};
inline constexpr size_t kStepMeans = static_cast<size_t>(StepMean::kDeciding) + 1;

// A stretch of steps.
struct StepBucket {
  Step first = 0;
  double at_s = 0.0;
  uint64_t steps = 0;  // 0: nothing was added
  double elapsed_min_s = 0.0, elapsed_max_s = 0.0;
  std::array<Mean, kStepMeans> means;
  uint64_t diverged = 0;  // steps whose loss was not a number
  uint64_t late = 0, refused = 0;
  double saved_s = 0.0, saved_about_s = 0.0;

  const Mean& mean(StepMean which) const { return means[static_cast<size_t>(which)]; }
  Mean& mean(StepMean which) { return means[static_cast<size_t>(which)]; }
  // Mean training loss; NaN if a loss was not a number, or if none is known.
  double loss() const { return diverged == 0 ? mean(StepMean::kLoss).value() : kUnknown; }

  void add(const StepRecord& record, const StepFacts& facts);
  void merge(const StepBucket& later);
};

// Columns of numbers, all of the same length, by name; the first is the first step of each bucket.
struct StepSeries {
  uint64_t per = 1;
  std::vector<std::pair<std::string_view, std::vector<double>>> columns;
};
StepSeries step_series(const Buckets<StepBucket>& buckets);

// At most `points` stretches of equally many steps: loss, step time and cutoff of each.
struct CurvePoint {
  double loss = kUnknown;
  double step_time_s = 0.0;
  double cutoff = kUnknown;
};
std::vector<CurvePoint> curve_of(const Buckets<StepBucket>& buckets, uint64_t points);

}  // namespace drover
