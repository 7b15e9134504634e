#include "forecast/learned/bayes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random_draw.h"
#include "core/test_text.h"
#include "forecast/learned/prior_model.h"
#include "forecast/learned/random_model.h"
#include "forecast/learned/scripted_fitter.h"
#include "forecast/learned/worker_features.h"
#include "forecast/normal.h"
#include "forecast/test_steps.h"

namespace drover {
namespace {

using ::testing::Not;

constexpr size_t kWorkers = 12;

// Steady workers, the last third of them 1.5 times slower.
std::vector<double> run_times(Step step, size_t workers = kWorkers) {
  std::vector<double> times;
  for (size_t i = 0; i < workers; ++i) {
    const double unit = std::clamp(unit_interval(draw({5, step, i})), 1e-9, 1.0 - 1e-9);
    const double level = 3 * i >= 2 * workers ? 1.5 : 1.0;
    times.push_back(level * std::exp(0.05 * normal_quantile(unit)));
  }
  return times;
}

// A hand-written model: each worker is `offset` scales off its kMidAnchor average.
ModelWeights model_by_hand(float offset, uint32_t workers = kWorkers) {
  ModelWeights weights{.shape = default_shape(Emission::kShared, workers)};
  weights.note.steps = 77;
  weights.tensors = tensors_of(weights.shape);
  for (Tensor& tensor : weights.tensors) {
    tensor.values.assign(size_t{tensor.rows} * tensor.columns, 0.0F);
    if (tensor.name != "worker_2_bias") continue;
    tensor.values[0] = 20.0F;               // the first component
    tensor.values[1 + kMidAnchor] = 20.0F;  // uses the kMidAnchor average
    tensor.values[1 + kAnchorCount] = offset;
  }
  return weights;
}

struct Walk {
  FitScript script;
  float offset = 0.0F;  // of the next model
  std::unique_ptr<BayesForecaster> bayes;
  std::vector<WorkerId> alive = first_workers(kWorkers);
  Forecast forecast;

  explicit Walk(BayesSettings settings = {}) {
    script.model = [this](const FitRequest& request) {
      return model_by_hand(offset, request.history->workers());
    };
    settings.prior = false;
    settings.fitter = std::make_unique<ScriptedFitter>(script);
    bayes = std::make_unique<BayesForecaster>(std::move(settings));
  }
  // Steps from..to-1; run-times beyond `cutoff` are censored.
  void steps(Step from, Step to, double cutoff = 1e300) {
    for (Step step = from; step < to; ++step) {
      if (bayes->ready(alive)) bayes->forecast(step, alive, forecast);
      bayes->learn(observed(step, run_times(step, alive.size()), cutoff));
    }
  }
};

TEST(Bayes, StartsWithoutAModelAndUsesOneWhenFitted) {
  Walk run;
  run.steps(0, 29);
  EXPECT_THAT(run.bayes->basis(), Not(mentions(77)));
  EXPECT_TRUE(run.script.requests.empty());
  run.steps(29, 31);
  ASSERT_EQ(run.script.requests.size(), 1U) << "after the 30th step";
  EXPECT_EQ(run.script.requests[0].history->steps(), 30U);
  EXPECT_EQ(run.script.requests[0].start, nullptr);
  run.steps(31, 60);
  EXPECT_THAT(run.bayes->basis(), mentions("model", 77)) << "the steps that it was fitted to";
}

TEST(Bayes, TheBuiltInModelForecastsANewCluster) {
  LearnedModel prior(prior_model(), 1);
  const std::vector<WorkerId> alive = first_workers(kWorkers);
  EXPECT_EQ(prior.incompatibility(alive), "");
  for (Step step = 0; step < 30; ++step) {
    std::vector<PastTime> row;
    for (const double time : run_times(step)) {
      const auto log_time = static_cast<float>(std::log(time));
      row.push_back({log_time, log_time, Known::kArrived});
    }
    prior.learn(step, row);
  }
  Forecast forecast;
  prior.forecast(30, alive, 128, forecast);
  for (size_t i = 0; i < kWorkers; ++i) {
    const std::vector<float> samples = samples_of(forecast, i);
    // Run-times vary by 5 %, and a forecast depends on the last few.
    EXPECT_NEAR(quantile_of(samples, 0.5) / (i < 8 ? 1.0 : 1.5), 1.0, 0.15);
    EXPECT_LT(quantile_of(samples, 0.9) / quantile_of(samples, 0.1), 1.6);
  }
}

TEST(Bayes, AModelFromAFileIsUsedFromTheStart) {
  BayesSettings settings;
  settings.model = std::make_shared<ModelWeights>(model_by_hand(0.0F));
  Walk run(std::move(settings));
  run.steps(0, 1);
  EXPECT_TRUE(run.bayes->ready(run.alive));
  run.steps(1, 25);
  EXPECT_THAT(run.bayes->basis(), mentions("model", 77));
}

TEST(Bayes, AWrongModelIsDisabledAndFittedAgain) {
  Walk run;
  run.offset = 30.0F;
  run.steps(0, 75);
  ASSERT_GE(run.script.requests.size(), 2U) << "earlier than by refit_growth";
  EXPECT_LE(run.script.asked_at[1], 29 + 15 + 2U);
  EXPECT_NE(run.script.requests[1].start, nullptr) << "starts from the current model";
  EXPECT_TRUE(run.bayes->model_stale()) << run.bayes->basis();
  run.bayes->forecast(75, run.alive, run.forecast);
  for (size_t i = 0; i < kWorkers; ++i) {
    EXPECT_NEAR(quantile_of(samples_of(run.forecast, i), 0.5), i < 8 ? 1.0 : 1.5, 0.15)
        << "the wrong model has no weight";
  }
  run.offset = 0.0F;  // the next one is right
  run.steps(75, 140);
  EXPECT_FALSE(run.bayes->model_stale()) << run.bayes->basis();
}

TEST(Bayes, AFailedFitIsReportedAndRetried) {
  Walk run;
  run.script.fails = true;
  run.steps(0, 70);
  EXPECT_THAT(run.bayes->basis(), mentions("no libtorch here")) << "the fitter's error";
  EXPECT_GE(run.script.requests.size(), 2U);
  run.script.fails = false;
  run.steps(70, 140);
  EXPECT_THAT(run.bayes->basis(), mentions("model", 77)) << "the steps that it was fitted to";
}

TEST(Bayes, CensoredRunTimesAreFittedAsBoundsAndImputed) {
  Walk run;
  run.steps(0, 22);
  run.steps(22, 31, 1.2);
  ASSERT_EQ(run.script.requests.size(), 1U);
  const History& history = *run.script.requests[0].history;
  const auto bound = static_cast<float>(std::log(1.2));
  for (WorkerId worker = 8; worker < kWorkers; ++worker) {
    const PastTime& time = history.row(28)[worker];
    EXPECT_EQ(time.known, Known::kLonger);
    EXPECT_FLOAT_EQ(time.bound, bound);
    EXPECT_GT(time.log_time, bound + 0.05F) << "drawn from this worker's forecast, 1.5";
    EXPECT_LT(time.log_time, 0.8F);
  }
}

TEST(Bayes, ALateRunTimeReachesTheFit) {
  Walk run;
  run.steps(0, 22);
  run.steps(22, 28, 1.2);
  run.bayes->learn_late(27, 10, 1.61);
  run.steps(28, 31);
  ASSERT_EQ(run.script.requests.size(), 1U);
  const PastTime& time = run.script.requests[0].history->row(27)[10];
  EXPECT_EQ(time.known, Known::kArrived);
  EXPECT_NEAR(time.log_time, std::log(1.61), 1e-5);
}

TEST(Bayes, WorkersJoinAndLeave) {
  Walk run;
  run.steps(0, 50);
  EXPECT_THAT(run.bayes->basis(), mentions("model", 77));
  run.alive = {0, 3, 7};
  run.bayes->forecast(50, run.alive, run.forecast);
  EXPECT_EQ(run.forecast.workers, 3U);
  StepTimes few = observed(50, run_times(50));
  for (WorkerId worker = 0; worker < kWorkers; ++worker) {
    if (worker != 0 && worker != 3 && worker != 7) few.known[worker] = Known::kNothing;
  }
  run.bayes->learn(few);
  run.alive = first_workers(kWorkers + 2);
  run.steps(51, 90);
  EXPECT_EQ(run.forecast.workers, kWorkers + 2);
  EXPECT_THAT(run.bayes->basis(), mentions("model", 77));
  for (const float time : run.forecast.times) EXPECT_TRUE(std::isfinite(time) && time > 0.0F);
}

TEST(Bayes, AModelWithAnOutputForEachWorkerAllowsAFewOthers) {
  // 4 of 44 alive are unknown: few enough among all, too many among the judged ones in some steps.
  BayesSettings settings;
  settings.model =
      std::make_shared<ModelWeights>(random_model(default_shape(Emission::kWorkers, 40), 3, 0.3));
  Walk walk(std::move(settings));
  walk.alive = first_workers(44);
  walk.steps(0, 60);
  EXPECT_EQ(walk.forecast.workers, 44U);
}

TEST(Bayes, EqualRecordsGiveEqualForecasts) {
  Walk one;
  Walk other;
  one.steps(0, 60, 1.3);
  other.steps(0, 60, 1.3);
  EXPECT_EQ(one.forecast.times, other.forecast.times);
  EXPECT_EQ(one.bayes->basis(), other.bayes->basis());
}

TEST(Bayes, AForecastNeverGoesBelowAWorkersFastestTime) {
  Walk run;
  run.offset = -30.0F;  // predicts impossibly short times
  run.steps(0, 40);
  for (size_t i = 0; i < kWorkers; ++i) {
    double fastest = 1e300;
    for (Step step = 0; step < 40; ++step) fastest = std::min(fastest, run_times(step)[i]);
    EXPECT_GE(static_cast<double>(samples_of(run.forecast, i)[0]), 0.85 * fastest);
  }
}

}  // namespace
}  // namespace drover
