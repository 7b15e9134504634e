#include "forecast/elfving.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/check.h"
#include "forecast/normal.h"
#include "forecast/run_time.h"

namespace drover {

ElfvingForecaster::ElfvingForecaster(const ElfvingSettings& settings)
    : warmup_(std::max<Step>(1, settings.warmup)), window_(warmup_), online_(false) {}

ElfvingForecaster::ElfvingForecaster(const ElfvingOnlineSettings& settings)
    : warmup_(std::max<Step>(1, settings.warmup)),
      window_(std::max<Step>(1, settings.window)),
      online_(true) {}

void ElfvingForecaster::learn(const StepTimes& times) {
  ++learned_;
  if (!online_ && fitted_) return;
  Record record;
  if (records_.size() == window_) {  // reuse its memory
    record = std::move(records_.front());
    records_.pop_front();
  }
  record.step = times.step;
  record.workers.clear();
  record.times.clear();
  for (WorkerId worker = 0; worker < times.seconds.size(); ++worker) {
    if (!has_run_time(times, worker)) continue;
    record.workers.push_back(worker);
    record.times.push_back({times.seconds[worker], times.known[worker] == Known::kLonger});
  }
  records_.push_back(std::move(record));
  if (learned_ >= warmup_) fit();
}

void ElfvingForecaster::learn_late(Step step, WorkerId worker, double seconds) {
  if (!is_run_time(seconds)) return;
  for (Record& record : records_) {
    if (record.step != step) continue;
    const auto found = std::lower_bound(record.workers.begin(), record.workers.end(), worker);
    if (found == record.workers.end() || *found != worker) return;
    Measured& known = record.times[static_cast<size_t>(found - record.workers.begin())];
    if (!known.censored) return;
    known = {std::max(seconds, known.value), false};
    stale_ = true;
    return;
  }
}

void ElfvingForecaster::fit() {
  stale_ = false;
  pooled_.clear();
  fitted_on_ = 0;
  cut_short_ = 0;
  double fastest = std::numeric_limits<double>::infinity();
  for (const Record& record : records_) {
    fitted_on_ += record.times.size();
    // All censored run-times of a step have the same bound. One entry with a count keeps the fit
    // cheap.
    size_t last_bound = 0;
    bool any_bound = false;
    for (const Measured& each : record.times) {
      if (!each.censored) {
        fastest = std::min(fastest, each.value);
      } else {
        ++cut_short_;
        if (any_bound && pooled_[last_bound].value == each.value) {
          pooled_[last_bound].count += 1.0;
          continue;
        }
        any_bound = true;
        last_bound = pooled_.size();
      }
      pooled_.push_back(each);
    }
  }
  const auto result = fit_censored_normal(pooled_);
  if (!result) return;  // no known run-time: keep the previous fit
  fit_ = *result;
  fitted_ = true;
  fastest_ = fastest;
  if (!online_) records_.clear();
}

bool ElfvingForecaster::ready(std::span<const WorkerId>) const {
  return learned_ >= warmup_ && fitted_;
}

void ElfvingForecaster::forecast(Step, std::span<const WorkerId> alive, Forecast& out) {
  DROVER_CHECK(ready(alive));
  DROVER_CHECK(!alive.empty());
  if (stale_) fit();
  const auto n = static_cast<uint32_t>(alive.size());
  out.resize(1, n);
  const std::span<float> row = out.row(0);
  for (uint32_t j = 1; j <= n; ++j) {
    const double expected = fit_.mean + fit_.deviation * expected_normal_order_statistic(j, n);
    // A wide normal distribution reaches below zero; the fastest run-time limits it.
    row[j - 1] = to_run_time(std::max(expected, fastest_));
  }
  out.sorted = true;
}

std::string ElfvingForecaster::basis() const {
  return std::string(online_ ? "last " : "first ") + std::to_string(window_) + " steps" +
         censored_share_text(static_cast<double>(cut_short_), static_cast<double>(fitted_on_));
}

}  // namespace drover
