#include "forecast/learned/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "forecast/sampling.h"
#include "forecast/scores.h"
#include "forecast/sort_rows.h"
#include "forecast/test_steps.h"

namespace drover {
namespace {

// Lognormal run-times, equally distributed for all workers and steps, by Box and Muller.
double run_time(DrawStream& draws, double spread) {
  const double radius = std::sqrt(-2.0 * std::log1p(-draws.unit()));
  return std::exp(spread * radius * std::cos(2.0 * M_PI * draws.unit()));
}

// Forecasts the true distribution or another one.
class Knowing : public Forecaster {
 public:
  Knowing(double spread, uint32_t samples, bool sorted = false, double factor = 1.0)
      : spread_(spread), samples_(samples), sorted_(sorted), factor_(factor) {}
  void learn(const StepTimes& times) override { learned.push_back(times.step); }
  void learn_late(Step, WorkerId, double) override {}
  bool ready(std::span<const WorkerId>) const override { return learned.size() >= 3; }
  void forecast(Step step, std::span<const WorkerId> alive, Forecast& out) override {
    asked.push_back(step);
    out.resize(samples_, static_cast<uint32_t>(alive.size()));
    DrawStream draws(draw({11, step}));
    for (float& time : out.times) time = static_cast<float>(factor_ * run_time(draws, spread_));
    if (sorted_) sort_rows(out);
  }
  std::string basis() const override { return "knows"; }

  std::vector<Step> learned;
  std::vector<Step> asked;

 private:
  const double spread_;
  const uint32_t samples_;
  const bool sorted_;
  const double factor_;
};

std::vector<StepTimes> record_of(size_t steps, size_t workers, double cutoff = 1e300) {
  DrawStream draws(5);
  std::vector<StepTimes> record;
  for (Step step = 0; step < steps; ++step) {
    std::vector<double> times;
    for (size_t i = 0; i < workers; ++i) times.push_back(run_time(draws, 0.5));
    record.push_back(observed(step, times, cutoff));
  }
  return record;
}

TEST(ShareCovered, IsThePartOfTheCellInsideTheInterval) {
  EXPECT_DOUBLE_EQ(share_covered(0.4, 0.6, 0.5), 1.0);
  EXPECT_DOUBLE_EQ(share_covered(0.0, 0.2, 0.5), 0.0);
  EXPECT_DOUBLE_EQ(share_covered(0.2, 0.3, 0.5), 0.5);
  EXPECT_DOUBLE_EQ(share_covered(0.0, 1.0, 0.9), 0.9) << "the position is unknown";
  EXPECT_DOUBLE_EQ(share_covered(0.95, 1.0, 0.9), 0.0);
}

TEST(Calibration, ACorrectForecastHasNominalCoverageWithFewSamples) {
  for (const uint32_t samples : {2U, 19U, 128U}) {
    SCOPED_TRACE(samples);
    Knowing knowing(0.5, samples);
    const auto found = calibrate(knowing, record_of(600, 20), 100);
    EXPECT_EQ(found.steps, 500U);
    EXPECT_EQ(found.workers.judged, 10'000U);
    EXPECT_NEAR(found.workers.covered_50, 0.5, 0.02);
    EXPECT_NEAR(found.workers.covered_90, 0.9, 0.012);
    EXPECT_NEAR(found.workers.covered_99, 0.99, 0.005);
    // Order statistics of a step are correlated, so the mean has a larger error.
    EXPECT_NEAR(found.order.covered_50, 0.5, 0.05);
    EXPECT_NEAR(found.order.covered_90, 0.9, 0.03);
    EXPECT_NEAR(found.order.covered_99, 0.99, 0.01);
    // For a normal distribution: E|X - y| - E|X - X'| / 2 = sigma / sqrt(pi).
    EXPECT_NEAR(found.workers.crps, 0.5 / std::sqrt(M_PI), 0.01);
  }
}

TEST(Calibration, AForecastTooNarrowCoversLessAndOneTooWideMore) {
  Knowing narrow(0.25, 128);
  Knowing right(0.5, 128);
  Knowing wide(1.0, 128);
  const auto record = record_of(300, 20);
  const auto of_narrow = calibrate(narrow, record, 50).workers;
  const auto of_right = calibrate(right, record, 50).workers;
  const auto of_wide = calibrate(wide, record, 50).workers;
  EXPECT_LT(of_narrow.covered_50, 0.3);
  EXPECT_LT(of_narrow.covered_90, 0.65);
  EXPECT_GT(of_wide.covered_50, 0.75);
  EXPECT_LT(of_right.crps, of_narrow.crps);
  EXPECT_LT(of_right.crps, of_wide.crps);
}

TEST(Calibration, CensoredRunTimesCountByTheirBounds) {
  // A third is censored; the true distribution has nominal coverage nevertheless.
  const auto record = record_of(400, 20, std::exp(0.2));
  Knowing right(0.5, 128);
  const auto found = calibrate(right, record, 50);
  EXPECT_NEAR(found.workers.covered_50, 0.5, 0.02);
  EXPECT_NEAR(found.workers.covered_90, 0.9, 0.02);
  EXPECT_NEAR(found.workers.covered_99, 0.99, 0.01);
  EXPECT_NEAR(found.order.covered_90, 0.9, 0.02);
  Knowing too_short(0.5, 128, false, 0.3);
  const auto of_short = calibrate(too_short, record, 50);
  EXPECT_LT(of_short.workers.covered_90, 0.35) << "bounds beyond all samples are outside";
  EXPECT_GT(of_short.workers.crps, found.workers.crps);
}

TEST(Calibration, EqualSamplesShareTheTruth) {
  class Constant : public Knowing {
   public:
    Constant() : Knowing(0.0, 100) {}
    bool ready(std::span<const WorkerId>) const override { return true; }
  } constant;
  const std::vector<StepTimes> record(10, observed(0, std::vector{1.0, 1.0}));
  const auto found = calibrate(constant, record, 0);
  EXPECT_NEAR(found.workers.covered_50, 0.5, 1e-9) << "anywhere among them";
  EXPECT_DOUBLE_EQ(found.workers.crps, 0.0);
}

TEST(Calibration, SortedForecastsAreJudgedByOrderOnly) {
  Knowing sorted(0.5, 64, true);
  const auto found = calibrate(sorted, record_of(100, 10), 50);
  EXPECT_EQ(found.workers.judged, 0U);
  EXPECT_TRUE(std::isnan(found.workers.covered_50));
  EXPECT_EQ(found.order.judged, 500U);
  EXPECT_NEAR(found.order.covered_90, 0.9, 0.06);
}

TEST(Calibration, ForecastsBeforeItLearnsAndLearnsEverything) {
  Knowing knowing(0.5, 16);
  const auto record = record_of(10, 4);
  calibrate(knowing, record, 1);
  EXPECT_EQ(knowing.learned, (std::vector<Step>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(knowing.asked, (std::vector<Step>{3, 4, 5, 6, 7, 8, 9})) << "as soon as it is ready";
  Knowing some(0.5, 16);
  EXPECT_EQ(calibrate(some, record, 4, 8).steps, 2U) << "24 run-times are three times 8";
  EXPECT_EQ(some.asked, (std::vector<Step>{4, 8}));
  EXPECT_EQ(some.learned.size(), 10U);
}

TEST(Calibration, TheOrderOfBoundsIsABound) {
  // The second and third arrival are at least 2; the known run-time of 5 does not determine their
  // order.
  class Once : public Knowing {
   public:
    Once() : Knowing(0.0, 2) {}
    bool ready(std::span<const WorkerId>) const override { return true; }
  } once;
  StepTimes times = observed(0, std::vector{5.0, 2.0, 1.0});
  times.known[1] = Known::kLonger;
  const auto found = calibrate(once, std::vector{times}, 0);
  const std::vector<float> ones = {1.0F, 1.0F};
  EXPECT_DOUBLE_EQ(found.order.crps,
                   (crps(ones, 1.0, false) + crps(ones, 2.0, true) + crps(ones, 5.0, true)) / 3);
}

}  // namespace
}  // namespace drover
