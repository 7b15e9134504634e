#include "forecast/joint/joint_forecaster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/random_draw.h"

namespace drover {
namespace {

constexpr uint32_t kWorkers = 5;

double uniform(uint64_t seed, uint64_t step, uint64_t worker) {
  return unit_interval(draw({seed, static_cast<uint64_t>(Purpose::kRunTimes), step, worker}));
}

// All workers arrive.
StepTimes step_of(Step step, std::vector<double> seconds) {
  StepTimes times;
  times.step = step;
  times.known.assign(seconds.size(), Known::kArrived);
  times.elapsed = *std::max_element(seconds.begin(), seconds.end());
  times.contributors = static_cast<uint32_t>(seconds.size());
  times.seconds = std::move(seconds);
  return times;
}

StepTimes cut(StepTimes times, double close) {
  times.elapsed = close;
  for (size_t i = 0; i < times.seconds.size(); ++i) {
    if (times.seconds[i] <= close) continue;
    times.seconds[i] = close;
    times.known[i] = Known::kLonger;
    --times.contributors;
  }
  return times;
}

std::vector<double> random_step(uint64_t seed, Step step) {
  std::vector<double> seconds;
  for (uint32_t worker = 0; worker < kWorkers; ++worker)
    seconds.push_back((1.0 + 0.3 * worker) * (0.9 + 0.2 * uniform(seed, step, worker)));
  return seconds;
}

std::vector<WorkerId> all_workers() {
  std::vector<WorkerId> all(kWorkers);
  std::iota(all.begin(), all.end(), WorkerId{0});
  return all;
}

// The levels after some steps, computed again from all of them in the most obvious way.
double slow_level(Levels::Rule rule, const std::vector<double>& times) {
  const auto median_of_last = [&](size_t window) {
    std::vector<double> last(times.end() - static_cast<ptrdiff_t>(std::min(window, times.size())),
                             times.end());
    std::sort(last.begin(), last.end());
    const size_t middle = last.size() / 2;
    return last.size() % 2 == 1 ? last[middle] : (last[middle - 1] + last[middle]) / 2.0;
  };
  double mean = times.front();
  switch (rule) {
    case Levels::kEwma:
      for (size_t i = 1; i < times.size(); ++i) mean += 0.3 * (times[i] - mean);
      return mean;
    case Levels::kMedian5:
      return median_of_last(5);
    case Levels::kMedian15:
      return median_of_last(15);
    case Levels::kMedian45:
      return median_of_last(45);
    case Levels::kLast:
    case Levels::kPeriod:
      break;
  }
  return times.back();
}

constexpr Levels::Rule kPlainRules[] = {Levels::kLast, Levels::kEwma, Levels::kMedian5,
                                        Levels::kMedian15, Levels::kMedian45};

TEST(JointForecaster, HasTheLevelsThatASlowComputationHas) {
  JointForecaster forecaster(1);
  std::vector<std::vector<double>> logs(kWorkers);
  for (Step step = 0; step < 70; ++step) {
    const std::vector<double> seconds = random_step(3, step);
    forecaster.learn(step_of(step, seconds));
    for (WorkerId worker = 0; worker < kWorkers; ++worker) {
      logs[worker].push_back(std::log(seconds[worker]));
      for (const Levels::Rule rule : kPlainRules) {
        ASSERT_NEAR(static_cast<double>(forecaster.levels().level(rule, worker)),
                    slow_level(rule, logs[worker]), 1e-4)
            << "step " << step << ", rule " << rule;
      }
    }
  }
}

// Every draw is the levels of now and the whole residual vector of one past step.
TEST(JointForecaster, DrawsWholeStepsAroundTheLevels) {
  JointForecaster forecaster(1);
  std::vector<std::vector<double>> logs(kWorkers);
  std::vector<std::vector<double>> residuals;  // by step after the first
  constexpr Step kSteps = 30;
  for (Step step = 0; step < kSteps; ++step) forecaster.learn(step_of(step, random_step(4, step)));
  const Levels::Rule best = forecaster.levels().best();
  ASSERT_NE(best, Levels::kPeriod);
  for (Step step = 0; step < kSteps; ++step) {
    const std::vector<double> seconds = random_step(4, step);
    if (step > 0) residuals.emplace_back();
    for (WorkerId worker = 0; worker < kWorkers; ++worker) {
      const double time = std::log(seconds[worker]);
      if (step > 0) residuals.back().push_back(time - slow_level(best, logs[worker]));
      logs[worker].push_back(time);
    }
  }
  WeightedForecast out;
  forecaster.forecast(View::kNames, kSteps, all_workers(), out);
  ASSERT_EQ(out.samples.samples, kSteps - 1);
  EXPECT_NEAR(std::accumulate(out.weights.begin(), out.weights.end(), 0.0), 1.0, 1e-9);
  EXPECT_GT(out.weights.back(), 1.1 * out.weights[8]) << "newer steps weigh more";
  for (uint32_t k = 0; k < out.samples.samples; ++k) {
    for (WorkerId worker = 0; worker < kWorkers; ++worker) {
      const double expected = slow_level(best, logs[worker]) + residuals[k][worker];
      EXPECT_NEAR(std::log(static_cast<double>(out.samples.row(k)[worker])), expected, 1e-3);
    }
  }
}

TEST(JointForecaster, RepeatsPastStepsInTheRawView) {
  JointForecaster forecaster(1);
  for (Step step = 0; step < 12; ++step) forecaster.learn(step_of(step, random_step(5, step)));
  WeightedForecast out;
  forecaster.forecast(View::kRaw, 12, all_workers(), out);
  ASSERT_EQ(out.samples.samples, 11U);
  for (uint32_t k = 0; k < 11; ++k) {
    for (WorkerId worker = 0; worker < kWorkers; ++worker)
      EXPECT_NEAR(static_cast<double>(out.samples.row(k)[worker]), random_step(5, k + 1)[worker],
                  1e-5);
  }
}

// "Exactly one is slow each time" comes from the data: no draw has two.
TEST(JointForecaster, KeepsWhatWorkersHaveInCommon) {
  JointForecaster forecaster(1);
  for (Step step = 0; step < 60; ++step) {
    std::vector<double> seconds(kWorkers, 1.0);
    seconds[static_cast<size_t>(5.0 * uniform(6, step, 0))] = 4.0;
    forecaster.learn(step_of(step, seconds));
  }
  for (const View view : {View::kNames, View::kCommon, View::kRaw}) {
    WeightedForecast out;
    forecaster.forecast(view, 60, all_workers(), out);
    double slow = 0.0;
    for (uint32_t k = 0; k < out.samples.samples; ++k) {
      const std::span<const float> row = out.samples.row(k);
      slow += out.weights[k] * static_cast<double>(std::count_if(
                                   row.begin(), row.end(), [](float time) { return time > 2.0F; }));
    }
    EXPECT_NEAR(slow, 1.0, 0.1);
  }
}

// The tail that only the first steps have shown is not forgotten, however often it is cut.
TEST(JointForecaster, FillsWhatWasCutFromStepsThatShowedIt) {
  JointForecaster forecaster(1);
  double beyond = 0.0;
  double count = 0.0;
  for (Step step = 0; step < 200; ++step) {
    std::vector<double> seconds(kWorkers);
    for (WorkerId worker = 0; worker < kWorkers; ++worker)
      seconds[worker] =
          uniform(7, step, worker) < 0.2 ? 2.0 : 1.0 + 0.01 * uniform(8, step, worker);
    const StepTimes whole = step_of(step, seconds);
    forecaster.learn(step < 30 ? whole : cut(whole, 1.1));
    std::vector<double> believed;
    forecaster.last_step(all_workers(), believed);
    ASSERT_EQ(believed.size(), kWorkers);
    for (WorkerId worker = 0; worker < kWorkers && step >= 100; ++worker) {
      if (seconds[worker] < 1.1) continue;
      EXPECT_GE(believed[worker], 1.1 - 1e-6);
      beyond += believed[worker];
      count += 1.0;
    }
  }
  EXPECT_NEAR(beyond / count, 2.0, 0.15);
}

TEST(JointForecaster, TakesAWorkerThatCameSoonerAtItsWord) {
  JointForecaster forecaster(1);
  for (Step step = 0; step < 40; ++step) {
    std::vector<double> seconds(kWorkers, 1.0 + 0.01 * uniform(9, step, 0));
    seconds[0] = 3.0;
    const StepTimes whole = step_of(step, seconds);
    forecaster.learn(step < 20 ? whole : cut(whole, 1.1));
  }
  const auto level = [&] {
    return std::exp(forecaster.levels().level(forecaster.levels().best(), 0));
  };
  EXPECT_NEAR(level(), 3.0F, 0.1F);
  forecaster.learn_late(39, 0, 1.3);
  EXPECT_NEAR(level(), 1.3F, 0.01F);
}

TEST(JointForecaster, NoticesWhenManyChangeAtOnce) {
  JointForecaster forecaster(1);
  for (Step step = 0; step < 30; ++step) forecaster.learn(step_of(step, random_step(3, step)));
  EXPECT_FALSE(forecaster.changed());
  std::vector<double> slower = random_step(3, 30);
  for (double& each : slower) each *= 3.0;
  forecaster.learn(step_of(30, slower));
  EXPECT_TRUE(forecaster.changed());
  for (Step step = 31; step < 80; ++step) {
    std::vector<double> slow = random_step(3, step);
    for (double& each : slow) each *= 3.0;
    if (step == 79) slow[2] *= 9.0;
    forecaster.learn(step_of(step, slow));
  }
  EXPECT_FALSE(forecaster.changed()) << "it is one worker";
}

TEST(Levels, FindsAPeriod) {
  JointForecaster forecaster(1);
  for (Step step = 0; step < 100; ++step) {
    std::vector<double> seconds = random_step(3, step);
    for (double& each : seconds) each *= step % 7 == 0 ? 3.0 : 1.0;
    forecaster.learn(step_of(step, seconds));
  }
  EXPECT_EQ(forecaster.levels().period() % 7, 0U) << "or a multiple of it";
  EXPECT_EQ(forecaster.levels().best(), Levels::kPeriod);
}

}  // namespace
}  // namespace drover
