#include "view/step_series.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace drover {
namespace {

using BucketValue = std::function<double(const StepBucket&)>;

BucketValue mean(StepMean which) {
  return [which](const StepBucket& bucket) { return bucket.mean(which).value(); };
}
BucketValue count(uint64_t StepBucket::*member) {
  return [member](const StepBucket& bucket) { return static_cast<double>(bucket.*member); };
}
BucketValue plain(double StepBucket::*member) {
  return [member](const StepBucket& bucket) { return bucket.*member; };
}

// Not every step of a bucket has the parts of its time. The parts of those that have them are
// scaled, so that the parts of a bucket add up to its time.
BucketValue part(StepMean which) {
  return [which](const StepBucket& bucket) {
    const double known = bucket.mean(StepMean::kComputing).sum +
                         bucket.mean(StepMean::kMoving).sum + bucket.mean(StepMean::kWaiting).sum;
    const double rest = bucket.mean(StepMean::kElapsed).value() -
                        bucket.mean(StepMean::kAggregating).value() -
                        bucket.mean(StepMean::kDeciding).value();
    if (bucket.mean(StepMean::kComputing).count == 0) return kUnknown;
    return known > 0.0 ? bucket.mean(which).sum / known * std::max(0.0, rest) : 0.0;
  };
}

const std::vector<std::pair<std::string_view, BucketValue>>& bucket_columns() {
  static const std::vector<std::pair<std::string_view, BucketValue>> columns = {
      {"step", count(&StepBucket::first)},
      {"at_s", plain(&StepBucket::at_s)},
      {"elapsed_s", mean(StepMean::kElapsed)},
      {"elapsed_min_s", plain(&StepBucket::elapsed_min_s)},
      {"elapsed_max_s", plain(&StepBucket::elapsed_max_s)},
      {"cutoff", mean(StepMean::kCutoff)},
      {"alive", mean(StepMean::kAlive)},
      {"contributors", mean(StepMean::kContributors)},
      {"oracle", mean(StepMean::kOracle)},
      {"loss", [](const StepBucket& bucket) { return bucket.loss(); }},
      {"accuracy", mean(StepMean::kAccuracy)},
      {"samples", mean(StepMean::kSamples)},
      {"learning_rate", mean(StepMean::kLearningRate)},
      {"noise_scale", mean(StepMean::kNoiseScale)},
      {"computing_s", part(StepMean::kComputing)},
      {"waiting_s", part(StepMean::kWaiting)},
      {"aggregating_s", mean(StepMean::kAggregating)},
      {"deciding_s", mean(StepMean::kDeciding)},
      {"moving_s", part(StepMean::kMoving)},
      {"late", count(&StepBucket::late)},
      {"refused", count(&StepBucket::refused)},
      {"saved_s", plain(&StepBucket::saved_s)},
      {"saved_about_s", plain(&StepBucket::saved_about_s)},
      {"fresh", mean(StepMean::kFresh)},
  };
  return columns;
}

}  // namespace

void Mean::add(double value) {
  if (std::isnan(value)) return;
  sum += value;
  ++count;
}

void Mean::merge(const Mean& other) {
  sum += other.sum;
  count += other.count;
}

void StepBucket::add(const StepRecord& record, const StepFacts& facts) {
  if (steps == 0) {
    first = record.step;
    at_s = facts.at_s;
    elapsed_min_s = elapsed_max_s = facts.elapsed_s;
  }
  ++steps;
  elapsed_min_s = std::min(elapsed_min_s, facts.elapsed_s);
  elapsed_max_s = std::max(elapsed_max_s, facts.elapsed_s);
  mean(StepMean::kElapsed).add(facts.elapsed_s);
  mean(StepMean::kCutoff).add(facts.cutoff);
  mean(StepMean::kAlive).add(facts.alive);
  mean(StepMean::kContributors).add(record.contributors);
  mean(StepMean::kOracle).add(facts.oracle);
  mean(StepMean::kLoss).add(record.loss);
  mean(StepMean::kAccuracy).add(record.accuracy);
  mean(StepMean::kSamples).add(static_cast<double>(record.samples));
  mean(StepMean::kLearningRate).add(record.learning_rate);
  mean(StepMean::kNoiseScale).add(record.noise_scale);
  mean(StepMean::kFresh).add(record.fresh_mean);
  mean(StepMean::kComputing).add(facts.split.computing_s);
  mean(StepMean::kMoving).add(facts.split.moving_s);
  mean(StepMean::kWaiting).add(facts.split.waiting_s);
  mean(StepMean::kAggregating).add(facts.split.aggregating_s);
  mean(StepMean::kDeciding).add(facts.split.deciding_s);
  // The loss of a step that used no whole gradient is unknown and does not mean divergence.
  diverged += std::isnan(record.loss) && record.contributors > 0 ? 1 : 0;
  late += record.late;
  refused += record.refused;
  saved_s += facts.saved.at_least_s;
  saved_about_s += facts.saved.about_s;
}

void StepBucket::merge(const StepBucket& later) {
  if (later.steps == 0) return;
  if (steps == 0) {
    *this = later;
    return;
  }
  steps += later.steps;
  elapsed_min_s = std::min(elapsed_min_s, later.elapsed_min_s);
  elapsed_max_s = std::max(elapsed_max_s, later.elapsed_max_s);
  for (size_t i = 0; i < kStepMeans; ++i) means[i].merge(later.means[i]);
  diverged += later.diverged;
  late += later.late;
  refused += later.refused;
  saved_s += later.saved_s;
  saved_about_s += later.saved_about_s;
}

StepSeries step_series(const Buckets<StepBucket>& buckets) {
  StepSeries series{.per = buckets.per(), .columns = {}};
  for (const auto& [name, value] : bucket_columns()) {
    std::vector<double> values;
    values.reserve(buckets.all().size());
    for (const StepBucket& bucket : buckets.all()) {
      if (bucket.steps > 0) values.push_back(value(bucket));
    }
    series.columns.emplace_back(name, std::move(values));
  }
  return series;
}

std::vector<CurvePoint> curve_of(const Buckets<StepBucket>& buckets, uint64_t points) {
  uint64_t steps = 0;
  for (const StepBucket& bucket : buckets.all()) steps += bucket.steps;
  points = std::min(points, steps);
  std::vector<StepBucket> merged(points);
  uint64_t before = 0;
  for (const StepBucket& bucket : buckets.all()) {
    if (bucket.steps > 0) merged[before * points / steps].merge(bucket);
    before += bucket.steps;
  }
  // If buckets have several steps, some points can be empty.
  std::erase_if(merged, [](const StepBucket& bucket) { return bucket.steps == 0; });
  std::vector<CurvePoint> curve;
  for (const StepBucket& bucket : merged) {
    curve.push_back({.loss = bucket.loss(),
                     .step_time_s = bucket.mean(StepMean::kElapsed).value(),
                     .cutoff = bucket.mean(StepMean::kCutoff).value()});
  }
  return curve;
}

}  // namespace drover
