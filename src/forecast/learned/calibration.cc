#include "forecast/learned/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "forecast/run_time.h"
#include "forecast/scores.h"
#include "forecast/sort_rows.h"

namespace drover {
namespace {

struct Truth {
  double time = 0.0;
  bool censored = false;  // `time` is a lower bound
};

constexpr std::array kLevels = {0.5, 0.9, 0.99};

class Judge {
 public:
  // REQUIRES: at least two samples, ascending.
  void judge(std::span<const float> samples, const Truth& truth) {
    // Samples are floats, so the comparison must be in floats for equal values to match.
    const float time = to_run_time(truth.time);
    const auto [first, last] = std::equal_range(samples.begin(), samples.end(), time);
    const auto cells = static_cast<double>(samples.size() + 1);
    const auto below = static_cast<double>(first - samples.begin());
    const auto up_to = static_cast<double>(last - samples.begin());
    const double lo = (truth.censored ? up_to : below) / cells;
    const double hi = truth.censored ? 1.0 : (up_to + 1.0) / cells;
    for (size_t i = 0; i < kLevels.size(); ++i) covered_[i] += share_covered(lo, hi, kLevels[i]);
    crps_ += crps(samples, double{time}, truth.censored);
    ++judged_;
  }

  Calibration result() const {
    const double count =
        judged_ > 0 ? static_cast<double>(judged_) : std::numeric_limits<double>::quiet_NaN();
    return {judged_, covered_[0] / count, covered_[1] / count, covered_[2] / count, crps_ / count};
  }

 private:
  uint64_t judged_ = 0;
  std::array<double, kLevels.size()> covered_{};
  double crps_ = 0.0;
};

class Walk {
 public:
  void judge(Forecaster& forecaster, const StepTimes& times) {
    alive_.clear();
    truths_.clear();
    for (WorkerId worker = 0; worker < times.seconds.size(); ++worker) {
      if (!has_run_time(times, worker)) continue;
      alive_.push_back(worker);
      truths_.push_back({times.seconds[worker], times.known[worker] == Known::kLonger});
    }
    if (alive_.empty() || !forecaster.ready(alive_)) return;
    forecaster.forecast(times.step, alive_, forecast_);
    if (forecast_.samples < 2) return;
    ++steps_;
    if (!forecast_.sorted) {
      judge_columns(workers_);
      sort_rows(forecast_);
    }
    put_in_order();
    judge_columns(order_);
  }

  ForecasterCalibration result() const { return {steps_, workers_.result(), order_.result()}; }

 private:
  // Each run-time is at least its recorded value, so the i-th arrival is at least the i-th smallest
  // recorded value. It is exactly that value if no bound is smaller.
  void put_in_order() {
    std::sort(truths_.begin(), truths_.end(), [](const Truth& a, const Truth& b) {
      return a.time < b.time || (a.time == b.time && !a.censored && b.censored);
    });
    bool censored = false;
    for (Truth& truth : truths_) {
      censored = censored || truth.censored;
      truth.censored = censored;
    }
  }

  void judge_columns(Judge& judge) {
    column_.resize(forecast_.samples);
    for (size_t i = 0; i < truths_.size(); ++i) {
      for (uint32_t k = 0; k < forecast_.samples; ++k) column_[k] = forecast_.row(k)[i];
      std::sort(column_.begin(), column_.end());
      judge.judge(column_, truths_[i]);
    }
  }

  uint64_t steps_ = 0;
  Judge workers_;
  Judge order_;
  std::vector<WorkerId> alive_;
  std::vector<Truth> truths_;  // by column of the forecast
  Forecast forecast_;
  std::vector<float> column_;
};

}  // namespace

double share_covered(double lo, double hi, double level) {
  const double inside = std::min(hi, 0.5 + level / 2) - std::max(lo, 0.5 - level / 2);
  return std::max(0.0, inside) / (hi - lo);
}

ForecasterCalibration calibrate(Forecaster& forecaster, std::span<const StepTimes> record,
                                size_t from, size_t most_times) {
  size_t times = 0;
  for (size_t i = from; i < record.size(); ++i) times += record[i].seconds.size();
  const size_t every = 1 + times / std::max<size_t>(1, most_times);
  Walk walk;
  for (size_t i = 0; i < record.size(); ++i) {
    if (i >= from && (i - from) % every == 0) walk.judge(forecaster, record[i]);
    forecaster.learn(record[i]);
  }
  return walk.result();
}

}  // namespace drover
