#include "forecast/learned/model_fitting.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/test_text.h"
#include "forecast/learned/random_model.h"
#include "forecast/learned/scripted_fitter.h"

namespace drover {
namespace {

struct Walk {
  FitScript script;
  ModelFitting fitting;
  History history;
  std::shared_ptr<const ModelWeights> model;  // the newest
  bool stale = false;

  explicit Walk(const FittingSettings& settings = {})
      : script{.model =
                   [](const FitRequest& request) { return random_model(request.shape, 3, 0.1); },
               .fails = false,
               .requests = {},
               .asked_at = {}},
        fitting(settings, std::make_unique<ScriptedFitter>(script)) {}

  // The steps from..to-1 have ended.
  void steps(Step from, Step to) {
    for (Step step = from; step < to; ++step) {
      const std::vector<PastTime> row = {{0.2F, 0.1F, Known::kLonger},
                                         {0.3F, 0.3F, Known::kArrived}};
      history.add(step, row);
      if (auto weights = fitting.poll(step)) {
        model = std::move(weights);
        stale = false;
      }
      fitting.begin_if_due(step, step + 1, history, model.get(), stale);
    }
  }
};

TEST(ModelFitting, BeginsAfterEnoughSteps) {
  Walk walk({.seed = 7});
  walk.steps(0, 29);
  EXPECT_TRUE(walk.script.requests.empty());
  EXPECT_NE(walk.fitting.remark(/*has_model=*/false), "");
  walk.steps(29, 31);
  ASSERT_EQ(walk.script.requests.size(), 1U);
  const FitRequest& request = walk.script.requests[0];
  EXPECT_EQ(request.history->steps(), 30U);
  EXPECT_EQ(request.shape, default_shape(Emission::kShared, 2));
  EXPECT_EQ(request.settings.seed, 7U);
  EXPECT_EQ(request.settings.iterations, FittingSettings{}.first_iterations);
  EXPECT_EQ(request.settings.foresight, FitSettings{}.foresight);
  EXPECT_EQ(request.start, nullptr);
  EXPECT_EQ(walk.model, nullptr);
  walk.steps(31, 32);
  EXPECT_NE(walk.model, nullptr);
  EXPECT_EQ(walk.fitting.remark(/*has_model=*/true), "");
}

TEST(ModelFitting, FitsAgainByGrowthButNotTooOften) {
  Walk walk;
  walk.steps(0, 200);
  // After 30 steps, then at least 30 more, then by a factor of 1.5: 60 -> 90 -> 135.
  ASSERT_EQ(walk.script.asked_at, (std::vector<Step>{29, 59, 89, 134}));
  EXPECT_NE(walk.script.requests[1].start, nullptr) << "continues from the model in use";
  EXPECT_EQ(walk.script.requests[1].settings.iterations, FittingSettings{}.refit_iterations);
}

TEST(ModelFitting, AStaleModelIsFittedAgainSooner) {
  Walk walk;
  walk.steps(0, 40);
  walk.stale = true;
  walk.steps(40, 50);
  EXPECT_EQ(walk.script.asked_at, (std::vector<Step>{29, 44}));
}

TEST(ModelFitting, AFailedFitIsReportedAndRetried) {
  Walk walk;
  walk.script.fails = true;
  walk.steps(0, 59);
  EXPECT_THAT(walk.fitting.remark(/*has_model=*/false), mentions("no libtorch here"));
  EXPECT_EQ(walk.script.requests.size(), 1U) << "not in every step";
  walk.script.fails = false;
  walk.steps(59, 63);
  EXPECT_EQ(walk.script.requests.size(), 2U);
  EXPECT_NE(walk.model, nullptr);
  EXPECT_EQ(walk.fitting.remark(/*has_model=*/true), "");
}

TEST(ModelFitting, PublishedModelsNeedMoreSteps) {
  Walk walk({.emission = Emission::kWorkers, .first_fit = 10});
  walk.steps(0, kFirstPublishedFit + 1);
  ASSERT_EQ(walk.script.requests.size(), 1U);
  EXPECT_EQ(walk.script.asked_at[0], kFirstPublishedFit - 1);
  EXPECT_EQ(walk.script.requests[0].shape.emission, Emission::kWorkers);
}

TEST(ModelFitting, ImputedRunTimesAreBoundsUnlessBelieved) {
  for (const bool believe : {false, true}) {
    Walk walk({.believe_imputed = believe, .foresight = 0.25});
    walk.steps(0, 30);
    ASSERT_EQ(walk.script.requests.size(), 1U);
    EXPECT_EQ(walk.script.requests[0].history->row(5)[0].known,
              believe ? Known::kArrived : Known::kLonger);
    EXPECT_EQ(walk.history.row(5)[0].known, Known::kLonger) << "the fit uses a copy";
    EXPECT_EQ(walk.script.requests[0].settings.foresight, 0.25);
  }
}

TEST(ModelFitting, DoesNotStartFromAnotherShape) {
  Walk walk;
  walk.model =
      std::make_shared<ModelWeights>(random_model(default_shape(Emission::kWorkers, 2), 3, 0.1));
  walk.steps(0, 30);
  ASSERT_EQ(walk.script.requests.size(), 1U);
  EXPECT_EQ(walk.script.requests[0].start, nullptr);
  EXPECT_EQ(walk.script.requests[0].settings.iterations, FittingSettings{}.refit_iterations);
}

TEST(ModelFitting, WithoutAFitterNothingIsFitted) {
  ModelFitting fitting({}, nullptr);
  History history;
  fitting.begin_if_due(100, 100, history, nullptr, true);
  EXPECT_EQ(fitting.poll(101), nullptr);
  EXPECT_NE(fitting.remark(/*has_model=*/false), "");
}

}  // namespace
}  // namespace drover
