#include "forecast/learned/model_forecaster.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/test_text.h"
#include "forecast/learned/random_model.h"
#include "forecast/test_steps.h"

namespace drover {
namespace {

std::shared_ptr<const ModelWeights> model_of(Emission emission, uint32_t workers) {
  ModelWeights weights = random_model(default_shape(emission, workers), 3, 0.3);
  weights.note.steps = 70;
  return std::make_shared<const ModelWeights>(std::move(weights));
}

std::vector<double> times_of(Step step, size_t workers) {
  std::vector<double> times;
  for (size_t i = 0; i < workers; ++i) {
    times.push_back(1.0 + 0.1 * static_cast<double>(i) + unit_interval(draw({5, step, i})));
  }
  return times;
}

TEST(ModelForecaster, EqualsTheModelsForecast) {
  for (const Emission emission : {Emission::kShared, Emission::kWorkers, Emission::kSorted}) {
    SCOPED_TRACE(name_of(emission));
    const auto weights = model_of(emission, 5);
    ModelForecaster forecaster(weights, 9);
    LearnedModel model(weights, 9);
    Imputer imputer(9);
    const std::vector<WorkerId> alive = first_workers(5);
    EXPECT_FALSE(forecaster.ready(alive)) << "before the first step";
    for (Step step = 0; step < 20; ++step) {
      const StepTimes times = observed(step, times_of(step, 5), 2.0);
      forecaster.learn(times);
      model.learn(step, imputer.impute_step(times));
      const auto late = times_of(step, 5)[4];
      if (step % 2 == 0 || late <= 2.0) continue;
      forecaster.learn_late(step, 4, late);
      imputer.correct(step, 4, late);
      model.correct(step, 4, static_cast<float>(std::log(late)));
    }
    ASSERT_TRUE(forecaster.ready(alive));
    Forecast ours;
    Forecast theirs;
    forecaster.forecast(20, alive, ours);
    model.forecast(20, alive, ours.samples, theirs);
    EXPECT_EQ(ours.samples, sample_count(5));
    EXPECT_EQ(ours.sorted, emission == Emission::kSorted);
    for (size_t i = 0; i < ours.times.size(); ++i) {
      ASSERT_NEAR(ours.times[i], theirs.times[i], 1e-5 * double{theirs.times[i]});
    }
  }
}

TEST(ModelForecaster, HasTheRequestedNumberOfSamples) {
  ModelForecaster forecaster(model_of(Emission::kShared, 3), 1, 512);
  forecaster.learn(observed(0, times_of(0, 3)));
  Forecast forecast;
  forecaster.forecast(1, first_workers(3), forecast);
  EXPECT_EQ(forecast.samples, 512U);
  EXPECT_THAT(forecaster.basis(), mentions("shared", 70));
}

}  // namespace
}  // namespace drover
