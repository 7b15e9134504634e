#include "forecast/learned/stepped_fitter.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

// Iterates up to ten times; the seed of the outcome is that of the request.
Result<FitOutcome> fake_fit(const FitRequest& request, const FitListener& listener) {
  FitOutcome outcome;
  outcome.weights.note.seed = request.settings.seed;
  for (uint32_t i = 1; i <= 10; ++i) {
    outcome.weights.note.steps = i;
    if (!listener(i, nullptr)) break;
  }
  return outcome;
}

FitRequest request_with(uint64_t seed) { return {.settings = {.seed = seed}}; }

TEST(SteppedFitter, AnswersOnceAndNotBeforeItsTime) {
  SteppedFitter fitter(fake_fit, 5);
  EXPECT_FALSE(fitter.busy());
  EXPECT_FALSE(fitter.poll(3));
  for (uint64_t round = 1; round <= 3; ++round) {
    const Step now = 10 * round;
    fitter.begin(now, request_with(round));
    for (Step step = now; step < now + 5; ++step) {
      EXPECT_TRUE(fitter.busy());
      EXPECT_FALSE(fitter.poll(step)) << step;
    }
    const auto answer = fitter.poll(now + 5);
    ASSERT_TRUE(answer && answer->ok());
    EXPECT_EQ(answer->value().weights.note.seed, round);
    EXPECT_FALSE(fitter.busy());
    EXPECT_FALSE(fitter.poll(now + 6)) << "once";
  }
}

TEST(SteppedFitter, AStepWithoutAPollDoesNotMatter) {
  SteppedFitter fitter(fake_fit, 5);
  fitter.begin(10, request_with(1));
  EXPECT_TRUE(fitter.poll(100));
}

TEST(SteppedFitter, ReturnsFailuresLikeResults) {
  SteppedFitter fitter(
      [](const FitRequest&, const FitListener&) -> Result<FitOutcome> {
        return system_error("no libtorch");
      },
      1);
  fitter.begin(1, request_with(1));
  EXPECT_FALSE(fitter.poll(1));
  const auto answer = fitter.poll(2);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error().message, "no libtorch");
  EXPECT_FALSE(fitter.busy());
}

TEST(SteppedFitter, StopsWhenAskedTo) {
  int asked = 0;
  SteppedFitter fitter(fake_fit, 0, [&] { return ++asked < 3; });
  fitter.begin(1, request_with(1));
  EXPECT_EQ(fitter.poll(1)->value().weights.note.steps, 3U);
}

}  // namespace
}  // namespace drover
