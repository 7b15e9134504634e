#include "policy/hedge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random_draw.h"
#include "forecast/test_steps.h"
#include "policy/close_rule.h"

namespace drover {
namespace {

// The value of a cutoff with a limit: each sample closed by the close rule.
double worth(const Forecast& forecast, const Terms& terms, uint32_t cutoff, double limit) {
  double sum = 0.0;
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    const std::vector<double> times(forecast.row(k).begin(), forecast.row(k).end());
    const StepClose close = close_of({.cutoff = cutoff, .time_limit = limit}, times);
    sum += terms.value(close.contributors, close.elapsed);
  }
  return sum / forecast.samples;
}

Forecast random_forecast(uint64_t seed, uint32_t samples, uint32_t workers) {
  std::vector<std::vector<float>> rows(samples, std::vector<float>(workers));
  for (uint32_t k = 0; k < samples; ++k) {
    const bool slow_node = unit_interval(draw({seed, k})) < 0.3;
    for (uint32_t i = 0; i < workers; ++i) {
      const double unit = unit_interval(draw({seed, k, i}));
      const double factor = slow_node && i < workers / 3 ? 3.0 : 1.0;
      rows[k][i] = static_cast<float>(factor * (1.0 + 0.2 * unit + (unit > 0.97 ? 4.0 : 0.0)));
    }
  }
  return sorted_forecast(rows);
}

TEST(Hedge, ALimitAvoidsWaitingForASlowNode) {
  // In half of the steps, a node with two of six workers is slow. A cutoff alone must either always
  // drop them or often wait for them.
  const Forecast forecast = sorted_forecast({{1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 9, 9}});
  HedgeSearch search;
  const Hedged hedged = search.best(forecast, {});
  EXPECT_EQ(hedged.expected.cutoff, 6U);
  EXPECT_NEAR(hedged.time_limit, 1.0, 1e-6);
  EXPECT_NEAR(hedged.expected.value, 5.0, 1e-6);
  EXPECT_NEAR(hedged.expected.arrival, 1.0, 1e-6);
  CutoffSearch plain;
  EXPECT_LT(plain.best(forecast, {}).value, 4.5);
}

TEST(Hedge, ReportsTheValueUnderTheCloseRule) {
  HedgeSearch search;
  CutoffSearch plain;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Forecast forecast =
        random_forecast(seed, 24 + static_cast<uint32_t>(seed), 1 + static_cast<uint32_t>(seed));
    for (const Terms& terms : {Terms{}, Terms{.overhead = 0.5}, Terms{.lambda = 8.0},
                               Terms{.overhead = 0.5, .noise = 3.0}}) {
      const Hedged hedged = search.best(forecast, terms);
      EXPECT_NEAR(hedged.expected.value,
                  worth(forecast, terms, hedged.expected.cutoff, hedged.time_limit), 1e-6);
      EXPECT_GE(hedged.expected.value + 1e-9, plain.best(forecast, terms).value)
          << "a limit is used only if it is better";
    }
  }
}

TEST(Hedge, ComesCloseToTheBestOfAllPairs) {
  HedgeSearch search;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Forecast forecast = random_forecast(seed, 128, 12);
    const Terms terms{.noise = seed % 2 == 0 ? std::nullopt : std::optional(6.0)};
    double best = 0.0;
    for (size_t i = 0; i < forecast.times.size(); i += 5) {
      const float limit = forecast.times[i];
      for (uint32_t cutoff = 1; cutoff <= 12; ++cutoff) {
        best = std::max(best, worth(forecast, terms, cutoff, static_cast<double>(limit)));
      }
    }
    EXPECT_GE(search.best(forecast, terms).expected.value, 0.99 * best);
  }
}

}  // namespace
}  // namespace drover
