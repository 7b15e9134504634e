#include "forecast/learned/judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "forecast/test_steps.h"

namespace drover {
namespace {

constexpr size_t kReference = 0;
constexpr size_t kOther = 1;

// Samples spread by 1 % around `middle`, of every worker.
void predict(Judge& judge, size_t candidate, size_t workers, double middle) {
  Forecast& forecast = judge.forecast_of(candidate);
  forecast.resize(Judge::kSamples, static_cast<uint32_t>(workers));
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    for (size_t i = 0; i < workers; ++i) {
      const double spread = 0.01 * (double((k * 7 + i * 13) % Judge::kSamples) / 32.0 - 1.0);
      forecast.row(k)[i] = static_cast<float>(middle * std::exp(spread));
    }
  }
}

// All workers take 1 s; each candidate predicts its own time.
void judge_steps(Judge& judge, Step from, Step to, double reference, double other,
                 size_t workers = 4) {
  const std::vector<double> times(workers, 1.0);
  const std::vector<WorkerId> alive = first_workers(workers);
  for (Step step = from; step < to; ++step) {
    const auto judged = judge.begin(step, alive);
    predict(judge, kReference, judged.size(), reference);
    if (other > 0.0) predict(judge, kOther, judged.size(), other);
    judge.score(observed(step, times));
  }
}

TEST(Judge, GivesTheBetterCandidateMoreWeight) {
  Judge judge(2, kReference, 1);
  EXPECT_EQ(judge.weights()[kReference], 0.0) << "nothing was scored yet";
  judge_steps(judge, 0, 5, 1.0, 1.5);
  EXPECT_EQ(judge.weights()[kReference], 1.0);
  EXPECT_EQ(judge.weights()[kOther], 0.0);
}

TEST(Judge, ACandidateWithoutAForecastIsNotScored) {
  Judge judge(2, kReference, 1);
  judge.begin(0, first_workers(4));
  predict(judge, kOther, 4, 1.5);
  judge.begin(0, first_workers(4));
  EXPECT_EQ(judge.forecast_of(kOther).samples, 0U) << "cleared by begin()";
  judge_steps(judge, 0, 5, 1.0, 0.0);
  EXPECT_EQ(judge.weights()[kOther], 0.0);
  EXPECT_FALSE(judge.is_stale(kOther));
}

TEST(Judge, DisablesAModelThatIsWorseThanTheReferenceForAWhile) {
  Judge judge(2, kReference, 1);
  // A common shift that alternates between steps, so that CommonShift cannot learn it.
  for (Step step = 0; step < Judge::kStaleAfter; ++step) {
    EXPECT_FALSE(judge.is_stale(kOther)) << "after " << step << " steps";
    judge_steps(judge, step, step + 1, 1.0, step % 2 == 0 ? 3.0 : 0.3);
  }
  EXPECT_TRUE(judge.is_stale(kOther));
  EXPECT_FALSE(judge.is_stale(kReference));
}

TEST(Judge, ANewModelIsNotStaleUntilItHasBeenJudged) {
  Judge judge(2, kReference, 1);
  for (Step step = 0; step < 40; ++step)
    judge_steps(judge, step, step + 1, 1.0, step % 2 == 0 ? 3.0 : 0.3);
  ASSERT_TRUE(judge.is_stale(kOther));
  ASSERT_EQ(judge.weights()[kOther], 0.0);
  judge.restart(kOther);
  EXPECT_FALSE(judge.is_stale(kOther));
  EXPECT_NEAR(judge.weights()[kOther] / judge.weights()[kReference], std::exp(-12.0 * 0.02), 1e-3)
      << "counts as slightly worse than the reference";
}

TEST(Judge, ScoresNothingWithoutWorkersOrIfOneIsAbsent) {
  Judge judge(2, kReference, 1);
  const std::vector<WorkerId> alive = first_workers(4);
  EXPECT_TRUE(judge.begin(0, {}).empty());
  judge.score(observed(0, std::vector<double>(4, 1.0)));
  EXPECT_EQ(judge.weights()[kReference], 0.0);
  judge.begin(1, alive);
  predict(judge, kReference, 4, 1.0);
  StepTimes times = observed(1, std::vector<double>(4, 1.0));
  times.known[2] = Known::kNothing;
  judge.score(times);
  EXPECT_EQ(judge.weights()[kReference], 0.0);
  times.known[2] = Known::kLonger;
  times.step = 2;
  judge.score(times);
  EXPECT_EQ(judge.weights()[kReference], 0.0) << "no workers were chosen for this step";
  judge.begin(3, alive);
  predict(judge, kReference, 4, 1.0);
  times.step = 3;
  judge.score(times);
  EXPECT_EQ(judge.weights()[kReference], 1.0) << "a bound is enough";
}

TEST(Judge, ChoosesOtherWorkersInTheNextStep) {
  Judge judge(1, kReference, 1);
  const std::vector<WorkerId> alive = first_workers(40);
  std::vector<bool> seen(40);
  for (Step step = 0; step < 40; ++step) {
    const auto judged = judge.begin(step, alive);
    ASSERT_EQ(judged.size(), Judge::kWorkers);
    for (const WorkerId worker : judged) seen[worker] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 40);
}

TEST(Judge, AddsCommonDeviationsToAForecast) {
  Judge judge(1, kReference, 1);
  const std::vector<WorkerId> alive = first_workers(4);
  for (Step step = 0; step < 60; ++step) {
    judge.begin(step, alive);
    predict(judge, kReference, 4, 1.0);
    judge.score(observed(step, std::vector<double>(4, step % 2 == 0 ? 0.7 : 1.4)));
  }
  Forecast forecast;
  forecast.resize(2, 4);
  std::fill(forecast.times.begin(), forecast.times.end(), 1.0F);
  judge.adjust(kReference, 60, forecast, 1, 2);
  EXPECT_EQ(forecast.row(0)[0], 1.0F) << "outside begin..end";
  EXPECT_NE(forecast.row(1)[0], 1.0F);
  EXPECT_EQ(forecast.row(1)[0], forecast.row(1)[3]) << "all workers of a sample alike";
  judge.restart(kReference);
  std::fill(forecast.times.begin(), forecast.times.end(), 1.0F);
  judge.adjust(kReference, 60, forecast, 0, 2);
  EXPECT_EQ(forecast.row(1)[0], 1.0F) << "a new model has no shifts yet";
}

}  // namespace
}  // namespace drover
