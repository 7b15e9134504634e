#include "fit/fit_data.h"

#include <gtest/gtest.h>

#include "core/test_text.h"
#include "fit/test_histories.h"
#include "forecast/learned/bayes.h"
#include "forecast/learned/worker_features.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::Not;

FitData prepared(const History& history, Emission emission) {
  FitRequest request;
  request.history = std::make_shared<const History>(history);
  request.shape = default_shape(emission, 99);
  request.shape.window = 4;
  Result<FitData> data = prepare_data(request);
  EXPECT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data.value().workers(), history.workers())
      << "the history's number, not the requested one";
  return std::move(data).value();
}

PastTime longer(float bound, float imputed) { return {imputed, bound, Known::kLonger}; }

TEST(FitData, OfTheSharedModelIsRelativeToWhatWasKnownBefore) {
  const History history = halved_history(5, 30, 1);
  const FitData data = prepared(history, Emission::kShared);
  EXPECT_EQ(data.held_out, 24U);
  WorkerFeatures features;
  for (size_t t = 0; t < 20; ++t) features.learn(t, history.row(t));
  for (WorkerId i = 0; i < 5; ++i) {
    const PastTime& time = history.row(20)[i];
    const size_t cell = 20 * 5 + i;
    const WorkerView view = features.view(i);
    EXPECT_EQ(data.took_part[cell], time.known == Known::kNothing ? 0.0F : 1.0F);
    EXPECT_EQ(data.cut_short[cell], time.known == Known::kLonger ? 1.0F : 0.0F);
    if (time.known == Known::kNothing) continue;
    EXPECT_NEAR(data.target[cell] * view.scale + view.anchors[kMidAnchor], time.bound, 1e-5);
    EXPECT_FLOAT_EQ(data.log_unit[cell], std::log(view.scale));
    const float* inputs = &data.inputs[cell * data.inputs_a_cell];
    EXPECT_TRUE(std::equal(view.features.begin(), view.features.end(), inputs));
    EXPECT_FLOAT_EQ(inputs[kFeatureCount],
                    squash((time.log_time - view.anchors[kMidAnchor]) / view.scale));
    for (size_t a = 0; a < kAnchorCount; ++a) {
      EXPECT_NEAR(data.anchors[a * 30 * 5 + cell] * view.scale + view.anchors[kMidAnchor],
                  view.anchors[a], 1e-5);
    }
  }
}

TEST(FitData, OfThePublishedModelIsNormalisedByTheStepsToTrainOn) {
  History history;
  for (Step t = 0; t < 40; ++t) {
    const double wave = t % 2 == 0 ? 0.5 : -0.5;
    // The newest fifth is held out.
    history.add(t, std::vector{arrived(t < 32 ? 1.0 + wave : 100.0), arrived(7.0), PastTime{}});
  }
  const FitData data = prepared(history, Emission::kWorkers);
  EXPECT_FLOAT_EQ(data.normal_mean[0], 1.0F);
  EXPECT_FLOAT_EQ(data.normal_mean[1], 7.0F);
  EXPECT_FLOAT_EQ(data.normal_mean[2], 4.0F) << "without data: as the others";
  EXPECT_NEAR(data.normal_scale, 0.5 / std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(data.target[0], std::sqrt(2.0), 1e-5);
  EXPECT_EQ(data.inputs[2], 0.0F);

  History constant;
  for (Step t = 0; t < 40; ++t) constant.add(t, std::vector{arrived(3.0)});
  EXPECT_GT(prepared(constant, Emission::kWorkers).normal_scale, 0.0F);
}

TEST(FitData, OfTheSortedModelHasCensoredThenAbsentWorkersLast) {
  History history;
  for (Step t = 0; t < 40; ++t) {
    // The last one arrived late, at more than the value imputed for the first.
    history.add(t, std::vector{longer(2.0F, 2.5F), PastTime{}, arrived(1.0), longer(2.0F, 2.25F),
                               arrived(4.0)});
  }
  const FitData data = prepared(history, Emission::kSorted);
  const std::vector<float> expected = {1.0F, 4.0F, 2.25F, 2.5F};
  for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(data.normal_mean[i], expected[i]);
  const auto row = [](const std::vector<float>& plane) {
    return std::vector<float>(plane.begin() + 5, plane.begin() + 10);
  };
  EXPECT_EQ(row(data.took_part), (std::vector<float>{1, 1, 1, 1, 0}));
  EXPECT_EQ(row(data.cut_short), (std::vector<float>{0, 0, 1, 1, 0}));
  EXPECT_NEAR(data.target[5 + 3] * data.normal_scale + data.normal_mean[3], 2.0, 1e-5)
      << "its bound";
  EXPECT_DOUBLE_EQ(data.cut_short_share, 0.5);
}

TEST(FitData, TooLittleIsRefusedWithTheNumbers) {
  FitRequest request;
  request.shape = default_shape(Emission::kShared, 0);
  request.history = std::make_shared<const History>(wavy_history(4, 16, 1));
  const Result<FitData> data = prepare_data(request);
  ASSERT_FALSE(data.ok());
  EXPECT_THAT(data.error(), is_error(ErrorKind::kInvalidInput, 16, 8, 3, 4, 17));
  request.history = std::make_shared<const History>(wavy_history(4, 17, 1));
  EXPECT_TRUE(prepare_data(request).ok());
  request.history = std::make_shared<const History>();
  EXPECT_FALSE(prepare_data(request).ok());
}

TEST(FitData, ThePublishedModelsNeedMoreStepsThanTheSharedOne) {
  for (const Emission emission : {Emission::kWorkers, Emission::kSorted}) {
    FitRequest request;
    request.shape = default_shape(emission, 0);
    const auto refusal = [&](size_t steps) {
      request.history = std::make_shared<const History>(wavy_history(4, steps, 1));
      const Result<FitData> data = prepare_data(request);
      return data.ok() ? "" : data.error().message;
    };
    EXPECT_THAT(refusal(30), AllOf(mentions(30, 20, 6, 50, "--emission"), Not(mentions(17))));
    EXPECT_THAT(refusal(9), mentions(9, 50, 17, "--emission"));
    EXPECT_NE(refusal(kFirstPublishedFit - 1), "");
    EXPECT_EQ(refusal(kFirstPublishedFit), "")
        << "the number of steps before the first fit in a run";
  }
}

}  // namespace
}  // namespace drover
