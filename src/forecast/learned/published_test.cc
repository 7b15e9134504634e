#include "forecast/learned/published.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "core/random_draw.h"
#include "core/test_text.h"
#include "forecast/learned/random_model.h"
#include "forecast/learned/scripted_fitter.h"
#include "forecast/test_steps.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::Not;

constexpr size_t kWorkers = 12;

// The last third of the workers is slower.
std::vector<double> run_times(Step step) {
  std::vector<double> times;
  for (size_t i = 0; i < kWorkers; ++i)
    times.push_back((i < 8 ? 1.0 : 1.5) + 0.02 * unit_interval(draw({5, step, i})));
  return times;
}

struct Walk {
  FitScript script;
  std::unique_ptr<PublishedForecaster> forecaster;
  std::vector<WorkerId> alive = first_workers(kWorkers);
  Forecast forecast;

  explicit Walk(PublishedSettings settings) {
    script.model = [](const FitRequest& request) {
      ModelWeights weights = random_model(request.shape, 3, 0.01);
      weights.note.steps = 77;
      return weights;
    };
    settings.fitter = std::make_unique<ScriptedFitter>(script);
    forecaster = std::make_unique<PublishedForecaster>(std::move(settings));
  }
  // Steps from..to-1; run-times beyond `cutoff` are censored.
  void steps(Step from, Step to, double cutoff = 1e300) {
    for (Step step = from; step < to; ++step) {
      if (forecaster->ready(alive)) forecaster->forecast(step, alive, forecast);
      forecaster->learn(observed(step, run_times(step), cutoff));
    }
  }
};

PublishedSettings settings_of(Emission emission, Imputing imputing = Imputing::kTruncated) {
  PublishedSettings settings;
  settings.fitting.emission = emission;
  settings.imputing = imputing;
  return settings;
}

std::shared_ptr<const ModelWeights> some_model(Emission emission) {
  return std::make_shared<ModelWeights>(random_model(default_shape(emission, kWorkers), 3, 0.01));
}

TEST(Published, IsEmpiricalUntilAModelIsFitted) {
  Walk walk(settings_of(Emission::kWorkers));
  walk.steps(0, 20);
  EXPECT_THAT(walk.forecaster->basis(), Not(mentions("ecdf"))) << "warming up";
  walk.steps(20, 50);
  EXPECT_THAT(walk.forecaster->basis(), AllOf(mentions("ecdf", 100, 0), Not(mentions(77))));
  walk.steps(50, 53);
  EXPECT_THAT(walk.forecaster->basis(),
              AllOf(mentions("model", 100, 77, 0), Not(mentions("ecdf"))));
}

TEST(Published, EqualsTheModelsForecast) {
  PublishedSettings settings = settings_of(Emission::kWorkers);
  settings.seed = 9;
  settings.model = some_model(Emission::kWorkers);
  LearnedModel model(settings.model, 9);
  Walk walk(std::move(settings));
  for (Step step = 0; step < 10; ++step) {
    std::vector<PastTime> row;
    for (const double time : run_times(step)) {
      const auto log_time = static_cast<float>(std::log(time));
      row.push_back({log_time, log_time, Known::kArrived});
    }
    model.learn(step, row);
  }
  walk.steps(0, 10);
  ASSERT_TRUE(walk.forecaster->ready(walk.alive)) << "no warm-up";
  walk.forecaster->forecast(10, walk.alive, walk.forecast);
  Forecast theirs;
  model.forecast(10, walk.alive, walk.forecast.samples, theirs);
  EXPECT_EQ(walk.forecast.times, theirs.times) << "without mixing, shift and floor";
}

TEST(Published, AFitTreatsImputedRunTimesAsKnown) {
  for (const Imputing imputing : {Imputing::kBound, Imputing::kTruncated}) {
    Walk walk(settings_of(Emission::kWorkers, imputing));
    walk.steps(0, 22);
    walk.steps(22, kFirstPublishedFit + 1, 1.2);
    ASSERT_EQ(walk.script.requests.size(), 1U);
    EXPECT_EQ(walk.script.requests[0].shape.emission, Emission::kWorkers);
    EXPECT_EQ(walk.script.requests[0].settings.foresight, 0.0);
    const PastTime& time = walk.script.requests[0].history->row(28)[9];
    EXPECT_EQ(time.known, Known::kArrived);
    const auto bound = static_cast<float>(std::log(1.2));
    if (imputing == Imputing::kBound) {
      EXPECT_FLOAT_EQ(time.log_time, bound);
    } else {
      EXPECT_GT(time.log_time, bound);
    }
  }
}

TEST(Published, SortedModelsImputeAnyOrderStatisticBeyondTheBound) {
  PublishedSettings settings = settings_of(Emission::kSorted);
  settings.model = some_model(Emission::kSorted);
  Walk walk(std::move(settings));
  EXPECT_FALSE(walk.forecaster->by_worker());
  walk.steps(0, 40);
  walk.forecaster->forecast(40, walk.alive, walk.forecast);
  EXPECT_TRUE(walk.forecast.sorted);
  const std::vector<float> expected = walk.forecast.times;
  // Worker 0 is censored; column 0 is the first arrival.
  StepTimes times = observed(40, run_times(40));
  times.known[0] = Known::kLonger;
  walk.forecaster->learn(times);
  walk.steps(41, kFirstPublishedFit + 1);
  ASSERT_EQ(walk.script.requests.size(), 1U);
  const PastTime& late = walk.script.requests[0].history->row(40)[0];
  EXPECT_EQ(late.known, Known::kArrived);
  EXPECT_GE(late.log_time, static_cast<float>(std::log(times.seconds[0])));
  EXPECT_TRUE(std::any_of(expected.begin(), expected.end(), [&](float time) {
    return std::abs(std::log(time) - late.log_time) < 1e-5F;
  })) << "one of the forecast times of that step";
}

TEST(Published, ALateRunTimeReachesTheFit) {
  Walk walk(settings_of(Emission::kWorkers));
  walk.steps(0, 28, 1.2);
  walk.forecaster->learn_late(27, 10, 1.61);
  walk.forecaster->learn_late(26, 10, std::nan(""));
  walk.steps(28, kFirstPublishedFit + 1);
  ASSERT_EQ(walk.script.requests.size(), 1U);
  EXPECT_NEAR(walk.script.requests[0].history->row(27)[10].log_time, std::log(1.61), 1e-5);
}

TEST(Published, ReportsAndIgnoresAnIncompatibleModel) {
  PublishedSettings settings = settings_of(Emission::kWorkers);
  settings.model = some_model(Emission::kWorkers);
  Walk walk(std::move(settings));
  walk.steps(0, 30);
  walk.forecaster->forecast(30, first_workers(kWorkers + 8), walk.forecast);
  EXPECT_EQ(walk.forecast.workers, kWorkers + 8);
  EXPECT_THAT(walk.forecaster->basis(), mentions("ecdf", 100, kWorkers, kWorkers + 8));
}

}  // namespace
}  // namespace drover
