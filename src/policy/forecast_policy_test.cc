#include "policy/forecast_policy.h"

#include <gtest/gtest.h>

#include <vector>

namespace drover {
namespace {

// Forecasts what it is told to, once it has seen all of those alive.
class FakeForecaster : public Forecaster {
 public:
  explicit FakeForecaster(std::vector<std::vector<float>> rows) : rows_(std::move(rows)) {}

  void learn(const StepTimes& times) override { known_ = times.known.size(); }
  void learn_late(Step step, WorkerId worker, double seconds) override {
    late = {step, worker, seconds};
  }
  bool ready(std::span<const WorkerId> alive) const override { return alive.back() < known_; }
  void forecast(Step, std::span<const WorkerId> alive, Forecast& out) override {
    out.resize(static_cast<uint32_t>(rows_.size()), static_cast<uint32_t>(alive.size()));
    for (uint32_t i = 0; i < rows_.size(); ++i) {
      for (size_t j = 0; j < alive.size(); ++j) out.row(i)[j] = rows_[i][alive[j]];
    }
  }
  std::string basis() const override { return "what the test says"; }

  struct Late {
    Step step = 0;
    WorkerId worker = 0;
    double seconds = 0.0;
  } late;

 private:
  const std::vector<std::vector<float>> rows_;
  size_t known_ = 0;
};

const std::vector<WorkerId> kAlive = {0, 1, 2, 3};

StepTimes seen(Step step, size_t workers = 4) {
  return {step, std::vector(workers, 1.0), std::vector(workers, Known::kArrived), 1.0,
          static_cast<uint32_t>(workers)};
}

ForecastPolicy policy_of(std::vector<std::vector<float>> rows, Objective objective, Step warmup) {
  return {"fake",
          std::make_unique<FakeForecaster>(std::move(rows)),
          {.objective = objective, .warmup = warmup}};
}

TEST(ForecastPolicy, WaitsForEverybodyDuringTheWarmUp) {
  auto policy = policy_of({{9.0F, 1.0F, 1.0F, 1.0F}}, Objective::kThroughput, 2);
  EXPECT_EQ(policy.decide({0, kAlive}).reason,
            "warm-up: waits for all 4 workers, 0 of 2 steps seen");
  policy.learn(seen(0));
  EXPECT_EQ(policy.decide({1, kAlive}).cutoff, 4u);
  policy.learn(seen(1));
  EXPECT_EQ(policy.decide({2, kAlive}).cutoff, 3u);
}

TEST(ForecastPolicy, SortsTheForecastAndSaysWhatItExpects) {
  auto policy =
      policy_of({{9.0F, 1.0F, 1.5F, 1.0F}, {9.0F, 1.5F, 1.0F, 1.0F}}, Objective::kThroughput, 1);
  policy.learn(seen(0));
  const Choice choice = policy.decide({1, kAlive, 0.5});
  EXPECT_EQ(choice.cutoff, 3u);
  EXPECT_EQ(choice.time_limit, kNoTimeLimit);
  EXPECT_EQ(choice.reason,
            "fake: 3 of 4 workers, 1.5 gradients per time expected by 1.5; what the test says");
}

TEST(ForecastPolicy, WaitsForEverybodyWhileItKnowsTooLittleOfSomebody) {
  auto policy = policy_of({{9.0F, 1.0F, 1.0F, 1.0F}}, Objective::kThroughput, 1);
  policy.learn(seen(0, 3));
  const Choice choice = policy.decide({1, kAlive});
  EXPECT_EQ(choice.cutoff, 4u);
  EXPECT_EQ(choice.reason,
            "fake: waits for all 4 workers, of whom too little is known after 1 steps");
  EXPECT_EQ(policy.decide({1, std::span(kAlive).first(3)}).cutoff, 2u);
}

TEST(ForecastPolicy, RateComparesWithTheLongRunOfWhatItDecided) {
  auto policy = policy_of({{1.0F, 1.2F, 3.0F, 5.0F}}, Objective::kRate, 1);
  policy.decide({0, kAlive});
  policy.learn(
      {.step = 0, .known = std::vector(4, Known::kArrived), .elapsed = 1e6, .contributors = 4});
  // What the warm-up took says nothing: as long as nothing is known, throughput decides.
  const Choice first = policy.decide({1, kAlive});
  EXPECT_EQ(first.cutoff, 2u);
  EXPECT_EQ(first.reason,
            "fake: 2 of 4 workers, 1.67 gradients per time expected by 1.2; what the test says");
  // 2 gradients in 5: whatever comes faster than 0.4 per time is waited for, though 4 in 5 are less
  // per time than 2 in 1.2.
  policy.learn(
      {.step = 1, .known = std::vector(4, Known::kArrived), .elapsed = 5.0, .contributors = 2});
  const Choice second = policy.decide({2, kAlive});
  EXPECT_EQ(second.cutoff, 4u);
  EXPECT_EQ(
      second.reason,
      "fake: all 4 workers, expected by 5, at 0.4 gradients per time in the long run; what the "
      "test says");
}

TEST(ForecastPolicy, GoodputWaitsForFewerWhenThereIsLittleNoise) {
  auto policy = policy_of({{1.0F, 1.2F, 1.5F, 5.0F}}, Objective::kGoodput, 1);
  policy.learn(seen(0));
  const Choice unknown = policy.decide({1, kAlive});
  EXPECT_EQ(unknown.cutoff, 3u);
  EXPECT_EQ(unknown.reason,
            "fake: 3 of 4 workers, 2 gradients per time expected by 1.5, noise not known yet; what "
            "the test says");
  // Progress 1, 4/3, 3/2, 8/5 of one gradient: 1, 1.11, 1, 0.32 per time.
  const Choice known = policy.decide({1, kAlive, 0.0, 1.0});
  EXPECT_EQ(known.cutoff, 2u);
  EXPECT_EQ(known.reason,
            "fake: 2 of 4 workers, goodput 1.11 per time expected by 1.2, noise 1 gradients; what "
            "the test says");
}

TEST(ForecastPolicy, PassesOnWhatCameLate) {
  auto forecaster = std::make_unique<FakeForecaster>(std::vector<std::vector<float>>{});
  const FakeForecaster& heard = *forecaster;
  ForecastPolicy policy("fake", std::move(forecaster), {.warmup = 1});
  policy.learn_late(7, 3, 2.5);
  EXPECT_EQ(heard.late.step, 7u);
  EXPECT_EQ(heard.late.worker, 3u);
  EXPECT_EQ(heard.late.seconds, 2.5);
}

}  // namespace
}  // namespace drover
