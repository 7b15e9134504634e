#include "cli/fit_progress.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/test_text.h"

namespace drover {
namespace {

FitState middle() {
  return {.what = "shared model",
          .iterations = 400,
          .iteration = 100,
          .judged = FitPoint{100, 1.23456, -0.5},
          .seconds = 30.0};
}

TEST(FitLine, ShowsIterationElboAndTimeLeft) {
  EXPECT_EQ(fit_line(middle(), 1000),
            "[=====               ]  fitting the shared model  iteration 100/400  "
            "ELBO 1.235, held out -0.500  at most 1:30 left");
}

TEST(FitLine, OmitsUnknownValues) {
  FitState state = middle();
  state.judged.reset();
  state.iteration = 0;
  EXPECT_EQ(fit_line(state, 1000),
            "[                    ]  fitting the shared model  iteration 0/400");
  state.judged = FitPoint{0, 1.0, std::nan("")};
  EXPECT_THAT(fit_line(state, 1000), mentions("1.000"));
  EXPECT_THAT(fit_line(state, 1000), ::testing::Not(::testing::HasSubstr("nan")));
}

TEST(FitLine, FitsANarrowTerminal) {
  EXPECT_EQ(fit_line(middle(), 60), "iteration 100/400  ELBO 1.235, held out -0.500");
  EXPECT_EQ(fit_line(middle(), 30), "iteration 100/400");
}

}  // namespace
}  // namespace drover
