// Decisions allocate nothing while the number of workers stays the same. Allocations are counted in
// malloc.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "forecast/learned/learned_model.h"
#include "forecast/learned/random_model.h"
#include "forecast/remaining.h"
#include "forecast/sort_rows.h"
#include "forecast/test_steps.h"

// Sanitizers have a malloc of their own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
thread_local size_t allocations = 0;
}

extern "C" {
void* __libc_malloc(size_t size);                      // NOLINT
void* __libc_calloc(size_t count, size_t size);        // NOLINT
void* __libc_realloc(void* old, size_t size);          // NOLINT
void* __libc_memalign(size_t alignment, size_t size);  // NOLINT
void* malloc(size_t size) noexcept {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) noexcept {
  ++allocations;
  return __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  ++allocations;
  return __libc_memalign(alignment, size);
}
}

namespace drover::testing_support {
namespace {

TEST(Allocation, IsCounted) {
  const size_t before = allocations;
  std::vector<int> some(100);
  EXPECT_EQ(allocations, before + 1);
  EXPECT_EQ(some.size(), 100U);
}

TEST(Allocation, IsNotNeededForADecision) {
  for (const Emission emission : {Emission::kShared, Emission::kWorkers, Emission::kSorted}) {
    for (const uint32_t workers : {16U, 158U, 1500U}) {
      // A different number of workers than in the fit, so that all code runs.
      const auto weights = std::make_shared<const ModelWeights>(
          random_model(default_shape(emission, workers - 1), 1));
      LearnedModel model(weights, 1);
      const std::vector<WorkerId> alive = first_workers(workers);
      std::vector<PastTime> row(workers);
      Forecast forecast;
      RowSorter sorter;
      size_t before = 0;
      for (Step step = 0; step < 40; ++step) {
        for (uint32_t i = 0; i < workers; ++i) {
          const auto log_time = static_cast<float>(spread_draw(step, i));
          row[i] = {log_time, log_time, i % 9 == step % 9 ? Known::kLonger : Known::kArrived};
        }
        if (step == 30) before = allocations;
        model.learn(step, row);
        model.correct(step, static_cast<WorkerId>(step % 9), 2.0F);
        model.forecast(step + 1, alive, 200, forecast);
        sorter.sort(forecast);
      }
      EXPECT_EQ(allocations, before) << name_of(emission) << ", " << workers << " workers";
    }
  }
}

TEST(Allocation, IsNotNeededForAReview) {
  for (const uint32_t workers : {16U, 158U, 1500U}) {
    Forecast forecast;
    forecast.resize(128, workers);
    Remaining remaining;
    std::vector<bool> arrived(workers);
    size_t before = 0;
    for (Step step = 0; step < 10; ++step) {
      for (size_t i = 0; i < forecast.times.size(); ++i) {
        forecast.times[i] = static_cast<float>(std::exp(0.3 * spread_draw(step, i)));
      }
      if (step == 1) before = allocations;
      remaining.start(forecast);
      for (uint32_t here = 0; here < workers; here += 1 + workers / 16) {
        for (uint32_t i = 0; i < workers; ++i) arrived[i] = i < here;
        remaining.condition(arrived, 0.5 + 0.1 * here, forecast_draws(1, step, here));
      }
    }
    EXPECT_EQ(allocations, before) << workers << " workers";
  }
}

}  // namespace
}  // namespace drover::testing_support

#endif
