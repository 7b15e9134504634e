// Workers that compute the same gradient are noticed once, after ten steps.
#include "cli/same_gradients.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

StepRecord step(double signal, double noise, uint32_t contributors = 2) {
  StepRecord record;
  record.contributors = contributors;
  record.signal = signal;
  record.noise = noise;
  return record;
}

TEST(SameGradients, WarnsOnceAfterTenStepsWithoutNoise) {
  SameGradients same;
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(same.add(step(4.0, 1e-8)));
  EXPECT_TRUE(same.add(step(4.0, -1e-9)));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(same.add(step(4.0, 0.0)));
}

TEST(SameGradients, DoesNotWarnOfWorkersWithTheirOwnData) {
  SameGradients same;
  for (int i = 0; i < 9; ++i) same.add(step(4.0, 0.0));
  EXPECT_FALSE(same.add(step(1.0, 1.5)));
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(same.add(step(4.0, 0.0)));
}

TEST(SameGradients, SaysNothingOfOneWorkerOrOfVanishingGradients) {
  SameGradients same;
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(same.add(step(4.0, 0.0, 1)));
    EXPECT_FALSE(same.add(step(0.0, 0.0)));
    EXPECT_FALSE(same.add(step(std::numeric_limits<double>::quiet_NaN(), 0.0)));
  }
}

}  // namespace
}  // namespace drover
