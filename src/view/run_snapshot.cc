#include "view/run_snapshot.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/quantile.h"

namespace drover {
namespace {

constexpr uint64_t kLossSteps = 10;

using BucketValue = std::function<double(const StepBucket&)>;

BucketValue mean(Mean StepBucket::*member) {
  return [member](const StepBucket& bucket) { return (bucket.*member).value(); };
}
BucketValue count(uint64_t StepBucket::*member) {
  return [member](const StepBucket& bucket) { return static_cast<double>(bucket.*member); };
}
BucketValue plain(double StepBucket::*member) {
  return [member](const StepBucket& bucket) { return bucket.*member; };
}

// Not every step of a bucket tells where its time went: those that do stand for the others, so that
// the parts of a bucket's time are its time.
BucketValue part(Mean StepBucket::*member) {
  return [member](const StepBucket& bucket) {
    const double known = bucket.computing.sum + bucket.moving.sum + bucket.waiting.sum;
    const double rest =
        bucket.elapsed.value() - bucket.aggregating.value() - bucket.deciding.value();
    if (bucket.computing.count == 0) return kUnknown;
    return known > 0.0 ? (bucket.*member).sum / known * std::max(0.0, rest) : 0.0;
  };
}

const std::vector<std::pair<std::string_view, BucketValue>>& bucket_columns() {
  static const std::vector<std::pair<std::string_view, BucketValue>> columns = {
      {"step", count(&StepBucket::first)},
      {"at_s", plain(&StepBucket::at_s)},
      {"elapsed_s", mean(&StepBucket::elapsed)},
      {"elapsed_min_s", plain(&StepBucket::elapsed_min_s)},
      {"elapsed_max_s", plain(&StepBucket::elapsed_max_s)},
      {"cutoff", mean(&StepBucket::cutoff)},
      {"alive", mean(&StepBucket::alive)},
      {"contributors", mean(&StepBucket::contributors)},
      {"oracle", mean(&StepBucket::oracle)},
      {"loss",
       [](const StepBucket& bucket) {
         return bucket.diverged == 0 ? bucket.loss.value() : kUnknown;
       }},
      {"accuracy", mean(&StepBucket::accuracy)},
      {"samples", mean(&StepBucket::samples)},
      {"learning_rate", mean(&StepBucket::learning_rate)},
      {"noise_scale", mean(&StepBucket::noise_scale)},
      {"computing_s", part(&StepBucket::computing)},
      {"waiting_s", part(&StepBucket::waiting)},
      {"aggregating_s", mean(&StepBucket::aggregating)},
      {"deciding_s", mean(&StepBucket::deciding)},
      {"moving_s", part(&StepBucket::moving)},
      {"late", count(&StepBucket::late)},
      {"refused", count(&StepBucket::refused)},
      {"saved_s", plain(&StepBucket::saved_s)},
      {"saved_about_s", plain(&StepBucket::saved_about_s)},
      {"fresh", mean(&StepBucket::fresh)},
  };
  return columns;
}

std::string value_of(const std::vector<std::pair<std::string, std::string>>& pairs,
                     std::string_view key) {
  for (const auto& [name, value] : pairs) {
    if (name == key) return value;
  }
  return {};
}

// Over the last steps of which it is known, weighted by samples.
double recent_mean(const std::deque<StepFacts>& recent, double StepRecord::*member) {
  double sum = 0.0;
  double weight = 0.0;
  uint64_t steps = 0;
  for (size_t i = recent.size(); i > 0 && steps < kLossSteps; --i) {
    const StepRecord& record = recent[i - 1].record;
    if (std::isnan(record.*member)) continue;
    const auto samples = static_cast<double>(std::max<uint64_t>(record.samples, 1));
    sum += record.*member * samples;
    weight += samples;
    ++steps;
  }
  return steps > 0 ? sum / weight : kUnknown;
}

}  // namespace

std::string_view name_of(WorkerState state) {
  switch (state) {
    case WorkerState::kAlive:
      return "alive";
    case WorkerState::kLost:
      return "lost";
    case WorkerState::kFinished:
      return "finished";
  }
  return "unknown";
}

std::string_view name_of(RunState state) {
  switch (state) {
    case RunState::kWaiting:
      return "waiting";
    case RunState::kRunning:
      return "running";
    case RunState::kSilent:
      return "silent";
    case RunState::kCompleted:
      return "completed";
    case RunState::kInterrupted:
      return "interrupted";
    case RunState::kFailed:
      return "failed";
  }
  return "unknown";
}

std::string RunSnapshot::setting(std::string_view key) const {
  return value_of(header.settings, key);
}
std::string RunSnapshot::environment(std::string_view key) const {
  return value_of(header.environment, key);
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

HeatMap heat_map(const Buckets<HeatColumn>& columns, const HeatLayout& layout) {
  HeatMap map{.per = columns.per(), .rows = layout.rows, .step = {}, .time_s = {}, .late = {}};
  for (const HeatColumn& column : columns.all()) {
    if (column.cells.empty()) continue;
    map.step.push_back(column.first);
    std::vector<double> times;
    std::vector<double> late;
    for (const HeatColumn::Cell& cell : column.cells) {
      times.push_back(cell.count > 0 ? cell.sum_s / cell.count : kUnknown);
      late.push_back(cell.count > 0 ? static_cast<double>(cell.missed) / cell.count : 0.0);
    }
    map.time_s.push_back(std::move(times));
    map.late.push_back(std::move(late));
  }
  return map;
}

PageTotals page_totals(const RunSums& sums) {
  PageTotals totals{.samples = sums.samples,
                    .used = sums.used,
                    .late = sums.late,
                    .refused = sums.refused,
                    .censored = sums.censored};
  if (!sums.elapsed_s().empty())
    totals.contributors_mean =
        static_cast<double>(sums.used) / static_cast<double>(sums.elapsed_s().size());
  totals.loss = recent_mean(sums.recent(), &StepRecord::loss);
  totals.accuracy = recent_mean(sums.recent(), &StepRecord::accuracy);
  std::vector<double> elapsed = sums.elapsed_s();
  totals.step_median_s = elapsed.empty() ? kUnknown : percentile(elapsed, 50);
  totals.step_p90_s = elapsed.empty() ? kUnknown : percentile(elapsed, 90);
  totals.waited_s = sums.waited_s;
  totals.saved_s = sums.saved_s;
  totals.wait_all_s = sums.waited_s + sums.saved_s;
  totals.saved_exact = sums.censored == 0;
  if (sums.saved_foretold) totals.saved_about_s = sums.saved_about_s;
  return totals;
}

}  // namespace drover
