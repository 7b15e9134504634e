#include "forecast/learned/learned_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/test_text.h"
#include "forecast/learned/random_model.h"
#include "forecast/learned/slow_model.h"
#include "forecast/learned/strata.h"
#include "forecast/test_steps.h"

namespace drover::testing_support {
namespace {

constexpr uint64_t kSeed = 11;

std::shared_ptr<const ModelWeights> shared_model(const ModelShape& shape, uint64_t seed) {
  return std::make_shared<const ModelWeights>(random_model(shape, seed));
}

// Some workers arrive, some are censored, some are absent.
std::vector<PastTime> random_row(Step step, uint32_t workers, bool all_there = false) {
  std::vector<PastTime> row;
  for (uint32_t i = 0; i < workers; ++i) {
    const auto log_time = static_cast<float>(1.0 + 0.01 * i + 0.4 * spread_draw(step, i));
    const uint64_t fate = draw({step, i, 7}) % 10;
    if (!all_there && fate == 0) {
      row.emplace_back();
    } else if (fate <= 2) {
      row.push_back({log_time + 0.3F, log_time, Known::kLonger});
    } else {
      row.push_back({log_time, log_time, Known::kArrived});
    }
  }
  return row;
}

std::vector<Numbers> normals_of(Step step, size_t steps, uint32_t latent, uint32_t samples,
                                uint32_t k) {
  std::vector<Numbers> noise(steps);
  for (uint32_t column = 0; column < steps * latent; ++column) {
    const Order order = state_order(kSeed, step, column);
    noise[column / latent].push_back(
        normal_quantile(double{uniform(order, k, strata_bits(samples))}));
  }
  return noise;
}

double worker_uniform(Step step, WorkerId worker, uint32_t samples, uint32_t k) {
  return double{uniform(worker_order(kSeed, step, worker), k, strata_bits(samples))};
}

void expect_near_log(float time, double log) {
  EXPECT_NEAR(std::log(time), log, 2e-4 * std::max(1.0, std::abs(log)));
}

TEST(LearnedModel, SharedMatchesTheFormulas) {
  const auto weights = shared_model(default_shape(Emission::kShared, 70), 2);
  LearnedModel model(weights, kSeed);
  WorkerFeatures features;
  std::vector<Numbers> v;
  const std::vector<WorkerId> alive = {3, 0, 69, 70, 12, 75};  // two that joined later
  for (Step step = 0; step < 30; ++step) {
    const std::vector<PastTime> row = random_row(step, step < 15 ? 70 : 76);
    std::vector<Shown> shown;
    for (WorkerId id = 0; id < row.size(); ++id) {
      if (row[id].known == Known::kNothing) continue;
      shown.push_back({id, features.view(id), row[id].log_time, row[id].known == Known::kLonger});
    }
    v.push_back(slow_pool(*weights, shown));
    if (v.size() > weights->shape.window) v.erase(v.begin());
    features.learn(step, row);
    model.learn(step, row);
    if (step > 10 && step < 25) continue;
    Forecast found;
    model.forecast(step + 1, alive, 32, found);
    ASSERT_EQ(found.samples, 32U);
    ASSERT_EQ(found.workers, alive.size());
    EXPECT_FALSE(found.sorted);
    for (const uint32_t k : {0U, 13U, 31U}) {
      const Numbers z =
          slow_state(*weights, v, normals_of(step + 1, v.size() + 1, weights->shape.latent, 32, k));
      for (size_t i = 0; i < alive.size(); ++i) {
        const SlowMixture mixture = slow_shared(*weights, alive[i], features.view(alive[i]), z);
        bool near_edge = false;
        const double log = mixture.pick(worker_uniform(step + 1, alive[i], 32, k), near_edge);
        if (!near_edge) expect_near_log(found.row(k)[i], log);
      }
    }
  }
}

// (log time - mean) / scale by output; 0 for a worker that took no part.
Numbers normalised(const ModelWeights& weights, const std::vector<PastTime>& row) {
  Numbers v;
  for (uint32_t i = 0; i < weights.shape.workers; ++i) {
    const bool there = i < row.size() && row[i].known != Known::kNothing;
    v.push_back(there ? (row[i].log_time - weights.tensor("normal_mean").values[i]) /
                            double{weights.tensor("normal_scale").values[0]}
                      : 0.0);
  }
  return v;
}

TEST(LearnedModel, WorkersMatchesTheFormulas) {
  const auto weights = shared_model(default_shape(Emission::kWorkers, 25), 3);
  std::vector<std::vector<PastTime>> rows;
  for (Step step = 0; step < 24; ++step) rows.push_back(random_row(step, 27));
  // Late run-times: one below its bound, one of an unknown worker, one of a step too old.
  const std::vector<WorkerId> alive = {0, 3, 24, 9};
  for (const auto& [step, worker] : {std::pair<Step, WorkerId>{23, 5}, {22, 8}, {20, 26}, {1, 0}}) {
    PastTime& time = rows[step][worker];
    if (time.known != Known::kLonger) time = {time.log_time, time.log_time, Known::kLonger};
  }
  LearnedModel late(weights, kSeed);
  for (Step step = 0; step < 24; ++step) late.learn(step, rows[step]);
  late.correct(23, 5, rows[23][5].bound + 1.0F);
  late.correct(23, 5, rows[23][5].bound + 9.0F);  // already known
  late.correct(22, 8, rows[22][8].bound - 1.0F);
  late.correct(20, 26, 5.0F);
  late.correct(1, 0, 5.0F);
  rows[23][5].log_time = rows[23][5].bound + 1.0F;
  rows[22][8].log_time = rows[22][8].bound;
  std::vector<Numbers> v;
  for (size_t step = 4; step < 24; ++step) v.push_back(normalised(*weights, rows[step]));
  Forecast found;
  late.forecast(24, alive, 16, found);
  for (const uint32_t k : {0U, 7U, 15U}) {
    const Numbers z =
        slow_state(*weights, v, normals_of(24, v.size() + 1, weights->shape.latent, 16, k));
    for (size_t i = 0; i < alive.size(); ++i) {
      const SlowMixture normal = slow_published(*weights, alive[i], z);
      bool near_edge = false;
      expect_near_log(found.row(k)[i], normal.pick(worker_uniform(24, alive[i], 16, k), near_edge));
    }
  }
}

TEST(LearnedModel, SortedMatchesTheFormulas) {
  const auto weights = shared_model(default_shape(Emission::kSorted, 140), 4);
  LearnedModel model(weights, kSeed);
  std::vector<Numbers> v;
  for (Step step = 0; step < 6; ++step) {
    std::vector<PastTime> row = random_row(step, 140, true);
    model.learn(step, row);
    std::sort(row.begin(), row.end(),
              [](const PastTime& a, const PastTime& b) { return a.log_time < b.log_time; });
    v.push_back(normalised(*weights, row));
  }
  const std::vector<WorkerId> alive = first_workers(140);
  Forecast found;
  model.forecast(6, alive, 20, found);
  EXPECT_TRUE(found.sorted);
  for (uint32_t k = 0; k < 20; ++k) {
    const Numbers z =
        slow_state(*weights, v, normals_of(6, v.size() + 1, weights->shape.latent, 20, k));
    Numbers expected;
    for (uint32_t i = 0; i < 140; ++i) {
      bool near_edge = false;
      expected.push_back(
          slow_published(*weights, i, z).pick(worker_uniform(6, i, 20, k), near_edge));
    }
    std::sort(expected.begin(), expected.end());
    for (uint32_t i = 0; i < 140; ++i) expect_near_log(found.row(k)[i], expected[i]);
  }
}

Forecast forecast_of(LearnedModel& model, Step step, uint32_t alive, uint32_t samples = 64) {
  Forecast forecast;
  model.forecast(step, first_workers(alive), samples, forecast);
  return forecast;
}

TEST(LearnedModel, SortedToleratesASmallDifference) {
  const auto weights = shared_model(default_shape(Emission::kSorted, 50), 5);
  LearnedModel model(weights, kSeed);
  for (Step step = 0; step < 5; ++step) model.learn(step, random_row(step, 50));
  const Forecast whole = forecast_of(model, 5, 50);
  for (const uint32_t alive : {45U, 49U, 51U, 55U}) {
    EXPECT_EQ(model.incompatibility(first_workers(alive)), "");
    const Forecast found = forecast_of(model, 5, alive);
    EXPECT_TRUE(found.sorted);
    ASSERT_EQ(found.workers, alive);
    for (uint32_t k = 0; k < found.samples; ++k) {
      EXPECT_TRUE(std::is_sorted(found.row(k).begin(), found.row(k).end()));
      EXPECT_NEAR(found.row(k)[alive / 2] / whole.row(k)[25], 1.0, 0.2);
      EXPECT_GE(found.row(k)[0], whole.row(k)[0]);
      EXPECT_LE(found.row(k)[alive - 1], whole.row(k)[49]);
    }
  }
  EXPECT_THAT(model.incompatibility(first_workers(40)), mentions(50, 40, 5, "shared"));
  EXPECT_NE(model.incompatibility(first_workers(56)), "");
}

TEST(LearnedModel, WorkersForecastsAFewUnknownWorkers) {
  const auto weights = shared_model(default_shape(Emission::kWorkers, 40), 6);
  LearnedModel model(weights, kSeed);
  for (Step step = 0; step < 5; ++step) model.learn(step, random_row(step, 44));
  EXPECT_EQ(model.incompatibility(first_workers(40)), "");
  EXPECT_EQ(model.incompatibility(first_workers(3)), "") << "fewer workers are compatible";
  EXPECT_EQ(model.incompatibility(first_workers(44)), "");
  EXPECT_THAT(model.incompatibility(first_workers(50)), mentions(40, 10, 50, "shared"));
  const Forecast known = forecast_of(model, 5, 40);
  const Forecast more = forecast_of(model, 5, 44);
  for (uint32_t k = 0; k < known.samples; ++k) {
    for (uint32_t i = 0; i < 40; ++i) EXPECT_EQ(known.row(k)[i], more.row(k)[i]);
  }
}

TEST(LearnedModel, SharedForecastsAnyWorkers) {
  const auto weights = shared_model(default_shape(Emission::kShared, 4), 7);
  LearnedModel model(weights, kSeed);
  for (Step step = 0; step < 5; ++step) model.learn(step, random_row(step, 4));
  EXPECT_EQ(model.incompatibility(first_workers(1000)), "");
  const Forecast forecast = forecast_of(model, 5, 1000);
  for (const float time : forecast.times) ASSERT_TRUE(std::isnormal(time) && time > 0.0F);
}

TEST(LearnedModel, NeedsOneStepAndToleratesAnEmptyOne) {
  for (const Emission emission : {Emission::kShared, Emission::kWorkers, Emission::kSorted}) {
    LearnedModel model(shared_model(default_shape(emission, 6), 8), kSeed);
    model.learn(0, std::vector<PastTime>(6));
    model.learn(1, random_row(1, 6));
    model.learn(2, std::vector<PastTime>(6));
    for (const float time : forecast_of(model, 3, 6).times) {
      ASSERT_TRUE(std::isnormal(time) && time > 0.0F);
    }
  }
}

TEST(LearnedModel, EqualSeedsGiveEqualForecasts) {
  for (const Emission emission : {Emission::kShared, Emission::kWorkers, Emission::kSorted}) {
    const auto weights = shared_model(default_shape(emission, 30), 9);
    LearnedModel one(weights, 1);
    LearnedModel same(weights, 1);
    LearnedModel other(weights, 2);
    for (LearnedModel* model : {&one, &same, &other}) {
      for (Step step = 0; step < 12; ++step) model->learn(step, random_row(step, 30));
    }
    forecast_of(one, 12, 29, 128);  // must not change later forecasts
    const Forecast first = forecast_of(one, 13, 30);
    EXPECT_EQ(first.times, forecast_of(same, 13, 30).times);
    EXPECT_NE(first.times, forecast_of(other, 13, 30).times);
    EXPECT_NE(first.times, forecast_of(one, 14, 30).times) << "each step has its own draws";
  }
}

TEST(LearnedModel, ALateRunTimeChangesTheForecast) {
  for (const Emission emission : {Emission::kShared, Emission::kWorkers}) {
    LearnedModel model(shared_model(default_shape(emission, 5), 10), kSeed);
    for (Step step = 0; step < 10; ++step) {
      std::vector<PastTime> row = random_row(step, 5, true);
      row[2] = {1.5F, 1.0F, Known::kLonger};
      model.learn(step, row);
    }
    const Forecast before = forecast_of(model, 10, 5);
    model.correct(9, 2, 4.0F);
    EXPECT_NE(before.times, forecast_of(model, 10, 5).times) << name_of(emission);
  }
}

}  // namespace
}  // namespace drover::testing_support
