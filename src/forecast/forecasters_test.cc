// The contract of all forecasters.
#include "forecast/forecasters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "forecast/sort_rows.h"
#include "forecast/test_steps.h"

namespace drover {
namespace {

struct Kind {
  std::string name;
  std::function<std::unique_ptr<Forecaster>(uint64_t seed)> make;
};

class EveryForecaster : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Forecaster> make(uint64_t seed = 1) const { return GetParam().make(seed); }
};

INSTANTIATE_TEST_SUITE_P(
    All, EveryForecaster,
    testing::Values(Kind{"elfving", [](uint64_t) { return make_elfving({}); }},
                    Kind{"elfving_online", [](uint64_t) { return make_elfving_online({}); }},
                    Kind{"ecdf", [](uint64_t seed) { return make_ecdf({.seed = seed}); }},
                    Kind{"ecdf_pooled",
                         [](uint64_t seed) {
                           return make_ecdf({.seed = seed, .per_worker = false});
                         }},
                    Kind{"ewma", [](uint64_t seed) { return make_ewma({.seed = seed}); }}),
    [](const auto& kind) { return kind.param.name; });

std::vector<float> forecast_of(Forecaster& forecaster, Step step, std::span<const WorkerId> alive) {
  EXPECT_TRUE(forecaster.ready(alive));
  Forecast out;
  forecaster.forecast(step, alive, out);
  EXPECT_EQ(out.workers, alive.size());
  EXPECT_GE(out.samples, 1U);
  EXPECT_EQ(out.times.size(), size_t{out.samples} * out.workers);
  for (const float time : out.times) {
    EXPECT_GT(time, 0.0F);
    EXPECT_TRUE(std::isfinite(time));
  }
  if (out.sorted) {
    for (uint32_t k = 0; k < out.samples; ++k) {
      EXPECT_TRUE(std::is_sorted(out.row(k).begin(), out.row(k).end()));
    }
  }
  sort_rows(out);
  return out.times;
}

// A record of lognormal run-times with censored, absent, late and new workers.
struct Record {
  std::vector<StepTimes> steps;
  struct Late {
    Step step;
    WorkerId worker;
    double seconds;
  };
  std::vector<Late> late;  // reported one step later
};

Record random_record(uint64_t seed, size_t workers, Step steps, double unit = 1.0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Record record;
  for (Step step = 0; step < steps; ++step) {
    const size_t present = workers + (step > steps / 2 ? 2 : 0);  // two join
    std::vector<double> run_times;
    for (size_t i = 0; i < present; ++i) {
      run_times.push_back(unit * (i % 4 == 0 ? 2.0 : 1.0) * std::exp(0.2 * normal(random)));
    }
    StepTimes times = observed(step, run_times, step < 20 ? 1e300 : 1.5 * unit);
    for (size_t i = 0; i < present; ++i) {
      if (step >= 20 && random() % 10 == 0) {
        times.known[i] = Known::kNothing;
        times.seconds[i] = 0.0;
      } else if (times.known[i] == Known::kLonger && random() % 5 == 0) {
        record.late.push_back({step, static_cast<WorkerId>(i), run_times[i]});
      }
    }
    record.steps.push_back(times);
  }
  return record;
}

void teach(Forecaster& forecaster, const Record& record) {
  size_t late = 0;
  for (const StepTimes& times : record.steps) {
    forecaster.learn(times);
    for (; late < record.late.size() && record.late[late].step + 1 <= times.step; ++late) {
      const auto& each = record.late[late];
      forecaster.learn_late(each.step, each.worker, each.seconds);
    }
  }
}

TEST_P(EveryForecaster, WaitsForItsWarmUp) {
  const auto forecaster = make();
  const auto alive = first_workers(4);
  const Record record = random_record(1, 4, 20);
  for (const StepTimes& times : record.steps) {
    EXPECT_FALSE(forecaster->ready(alive)) << "before step " << times.step;
    forecaster->learn(times);
  }
  EXPECT_TRUE(forecaster->ready(alive));
}

TEST_P(EveryForecaster, EqualRecordsGiveEqualForecasts) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const Record record = random_record(seed, 9, 80);
    const auto one = make(seed);
    const auto other = make(seed);
    teach(*one, record);
    teach(*other, record);
    const auto alive = first_workers(11);
    EXPECT_EQ(forecast_of(*one, 80, alive), forecast_of(*other, 80, alive));
    EXPECT_EQ(forecast_of(*one, 80, alive), forecast_of(*other, 80, alive)) << "asked again";
  }
}

TEST_P(EveryForecaster, DoesNotDependOnUnreportedRunTimes) {
  Record record = random_record(3, 9, 80);
  const auto one = make();
  teach(*one, record);
  for (StepTimes& times : record.steps) {
    for (size_t i = 0; i < times.seconds.size(); ++i) {
      if (times.known[i] == Known::kNothing) times.seconds[i] = 1234.5;
    }
  }
  const auto other = make();
  teach(*other, record);
  const auto alive = first_workers(11);
  EXPECT_EQ(forecast_of(*one, 80, alive), forecast_of(*other, 80, alive));
}

TEST_P(EveryForecaster, WorksInEveryUnit) {
  const auto alive = first_workers(11);
  const auto seconds = make();
  teach(*seconds, random_record(4, 9, 80));
  const auto expected = forecast_of(*seconds, 80, alive);
  for (const double unit : {1e-6, 1e6}) {
    const auto other = make();
    teach(*other, random_record(4, 9, 80, unit));
    const auto scaled = forecast_of(*other, 80, alive);
    ASSERT_EQ(scaled.size(), expected.size());
    // Histograms and floats round differently in another unit, so a few draws may differ.
    double sum = 0.0;
    double expected_sum = 0.0;
    for (size_t i = 0; i < scaled.size(); ++i) {
      sum += std::log(double{scaled[i]} / unit);
      expected_sum += std::log(double{expected[i]});
    }
    EXPECT_NEAR(sum / static_cast<double>(scaled.size()),
                expected_sum / static_cast<double>(scaled.size()), 0.02);
  }
}

TEST_P(EveryForecaster, ForecastsConstantRunTimesExactly) {
  const std::vector<double> equal(6, 0.7);
  const auto forecaster = make();
  for (Step step = 0; step < 40; ++step) {
    StepTimes times = observed(step, equal);
    if (step > 20) times.known[step % 6] = Known::kLonger;  // the cutoff falls among equals
    forecaster->learn(times);
  }
  const auto times = forecast_of(*forecaster, 40, first_workers(6));
  size_t near = 0;
  for (const float time : times) near += std::abs(time - 0.7F) < 0.007F ? 1 : 0;
  // Censored run-times may be longer than all known ones: a few larger samples are allowed.
  EXPECT_GE(near, times.size() * 8 / 10);
}

TEST_P(EveryForecaster, ForecastsAWorkerAlone) {
  const auto forecaster = make();
  for (Step step = 0; step < 30; ++step)
    forecaster->learn(observed(step, std::vector<double>{2.0}));
  for (const float time : forecast_of(*forecaster, 30, first_workers(1)))
    EXPECT_NEAR(time, 2.0, 0.02);
}

TEST_P(EveryForecaster, ForecastsAnUnknownWorker) {
  const auto forecaster = make();
  teach(*forecaster, random_record(5, 9, 40));
  // One worker that was never seen, and one with bounds only.
  const std::vector<WorkerId> alive = {0, 1, 2, 500};
  for (const float time : forecast_of(*forecaster, 40, alive)) EXPECT_LT(time, 100.0F);
  StepTimes times = observed(40, std::vector<double>(12, 1.0));
  times.known[11] = Known::kLonger;
  forecaster->learn(times);
  for (const float time : forecast_of(*forecaster, 41, std::vector<WorkerId>{0, 11})) {
    EXPECT_LT(time, 100.0F);
  }
}

TEST_P(EveryForecaster, ToleratesInvalidRecords) {
  const auto forecaster = make();
  const auto alive = first_workers(3);
  // No workers; no arrivals; invalid run-times.
  forecaster->learn(observed(0, {}));
  for (Step step = 1; step < 30; ++step)
    forecaster->learn(observed(step, std::vector<double>(3, 9.0), 1.0));
  EXPECT_FALSE(forecaster->ready(alive)) << "there were no arrivals";
  for (Step step = 30; step < 50; ++step) {
    forecaster->learn(observed(step, std::vector<double>{NAN, -1.0, 0.0}));
    forecaster->learn(observed(step, std::vector<double>{INFINITY, 0.0, 0.0}, 5.0));
  }
  EXPECT_FALSE(forecaster->ready(alive));
  forecaster->learn_late(3, 77, 1.0);    // unknown worker
  forecaster->learn_late(9999, 1, 1.0);  // unknown step
  forecaster->learn_late(49, 1, NAN);
  for (Step step = 50; step < 80; ++step)
    forecaster->learn(observed(step, std::vector<double>{1.0, 2.0, 3.0}));
  for (const float time : forecast_of(*forecaster, 80, alive)) EXPECT_LT(time, 1000.0F);
  // All workers are censored again, for many steps.
  for (Step step = 80; step < 600; ++step) {
    forecaster->learn(observed(step, std::vector<double>(3, 9.0), 4.0));
  }
  for (const float time : forecast_of(*forecaster, 600, alive)) EXPECT_LT(time, 1e6F);
}

TEST_P(EveryForecaster, IgnoresLateRunTimesOfOldSteps) {
  const Record record = random_record(6, 9, 400);
  const auto one = make();
  const auto other = make();
  teach(*one, record);
  teach(*other, record);
  for (WorkerId worker = 0; worker < 9; ++worker) other->learn_late(30, worker, 50.0);
  const auto alive = first_workers(11);
  EXPECT_EQ(forecast_of(*one, 400, alive), forecast_of(*other, 400, alive));
}

TEST_P(EveryForecaster, ReportsItsBasis) {
  const auto forecaster = make();
  teach(*forecaster, random_record(7, 9, 40));
  EXPECT_THAT(forecaster->basis(), ::testing::ContainsRegex("[0-9]+ %")) << "cut short";
}

TEST(Seeds, GiveOtherSamples) {
  const auto alive = first_workers(11);
  const Record record = random_record(8, 9, 40);
  for (const auto& make : std::vector<std::function<std::unique_ptr<Forecaster>(uint64_t)>>{
           [](uint64_t seed) { return make_ecdf({.seed = seed}); },
           [](uint64_t seed) { return make_ewma({.seed = seed}); }}) {
    const auto one = make(1);
    const auto other = make(2);
    teach(*one, record);
    teach(*other, record);
    EXPECT_NE(forecast_of(*one, 40, alive), forecast_of(*other, 40, alive));
  }
}

TEST(SampleCount, ShrinksWithTheNumberOfWorkers) {
  EXPECT_EQ(sample_count(1), 128U);
  EXPECT_EQ(sample_count(1000), 100U);
  EXPECT_EQ(sample_count(2175), 64U);
}

TEST(DrawStream, ShufflesEveryItemEverywhereEquallyOften) {
  const uint64_t rounds = 20'000;
  std::vector<int> count(36, 0);
  for (uint64_t round = 0; round < rounds; ++round) {
    std::vector<size_t> items = {0, 1, 2, 3, 4, 5};
    DrawStream draws(draw({round}));
    draws.shuffle(std::span(items));
    for (size_t place = 0; place < 6; ++place) ++count[place * 6 + items[place]];
  }
  // Mean n/6 = 3333, deviation sqrt(n 5/36) = 53; five of them.
  for (const int each : count) EXPECT_NEAR(each, 3333, 5 * 53);
}

}  // namespace
}  // namespace drover
