// The course of a run: means and sums over buckets of steps, at most kStepBuckets of them.
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

// The mean of the known values.
struct Mean {
  double sum = 0.0;
  uint64_t count = 0;
  void add(double value);  // NaN: unknown
  void merge(const Mean& other);
  double value() const { return count > 0 ? sum / static_cast<double>(count) : kUnknown; }
};

// Quantities of which a bucket has the mean.
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

// A range of steps.
struct StepBucket {
  Step first = 0;
  double at_s = 0.0;
  uint64_t steps = 0;  // 0: no step was added
  double elapsed_min_s = 0.0, elapsed_max_s = 0.0;
  std::array<Mean, kStepMeans> means;
  uint64_t diverged = 0;  // steps whose loss was NaN
  uint64_t late = 0, refused = 0;
  double saved_s = 0.0, saved_about_s = 0.0;

  const Mean& mean(StepMean which) const { return means[static_cast<size_t>(which)]; }
  Mean& mean(StepMean which) { return means[static_cast<size_t>(which)]; }
  // Mean training loss; NaN if a loss was NaN, or if none is known.
  double loss() const { return diverged == 0 ? mean(StepMean::kLoss).value() : kUnknown; }

  void add(const StepRecord& record, const StepFacts& facts);
  void merge(const StepBucket& later);
};

// Named columns of numbers, all of the same length. The first column has the first step of each
// bucket.
struct StepSeries {
  uint64_t per = 1;
  std::vector<std::pair<std::string_view, std::vector<double>>> columns;
};
StepSeries step_series(const Buckets<StepBucket>& buckets);

// Loss, step time and cutoff over at most `points` equal ranges of steps.
struct CurvePoint {
  double loss = kUnknown;
  double step_time_s = 0.0;
  double cutoff = kUnknown;
};
std::vector<CurvePoint> curve_of(const Buckets<StepBucket>& buckets, uint64_t points);

}  // namespace drover
