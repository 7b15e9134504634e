// Fitting through the module, as the program does it.
#include <gtest/gtest.h>

#include "core/test_text.h"
#include "fit/fit_module.h"
#include "fit/test_histories.h"

namespace drover {
namespace {

constexpr std::array kEmissions = {Emission::kShared, Emission::kWorkers, Emission::kSorted};

FitRequest request_of(const History& history, Emission emission, uint32_t iterations) {
  FitRequest request;
  request.shape = default_shape(emission, history.workers());
  request.shape.window = 6;
  request.history = std::make_shared<const History>(history);
  request.settings.iterations = iterations;
  request.settings.judge_every = 5;
  request.settings.foresight = emission == Emission::kShared ? 1.0 : 0.0;
  return request;
}

FitOutcome fit(const FitRequest& request, const FitListener& listener = {}) {
  const Result<FitFunction> function = load_fit_function();
  EXPECT_TRUE(function.ok()) << function.error().message;
  Result<FitOutcome> outcome = function.value()(request, listener);
  EXPECT_TRUE(outcome.ok()) << outcome.error().message;
  return std::move(outcome).value();
}

void expect_whole(const ModelWeights& weights) {
  const std::vector<Tensor> expected = tensors_of(weights.shape);
  ASSERT_EQ(weights.tensors.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor& tensor = weights.tensors[i];
    EXPECT_EQ(tensor.name, expected[i].name);
    EXPECT_EQ(tensor.rows, expected[i].rows);
    EXPECT_EQ(tensor.columns, expected[i].columns);
    EXPECT_EQ(tensor.values.size(), size_t{tensor.rows} * tensor.columns);
    for (const float value : tensor.values) EXPECT_TRUE(std::isfinite(value)) << tensor.name;
  }
}

TEST(Fit, GetsBetterAndSaysHow) {
  for (const Emission emission : kEmissions) {
    SCOPED_TRACE(name_of(emission));
    FitRequest request = request_of(wavy_history(6, 80, 1), emission, 60);
    request.settings.patience = 100;
    const FitOutcome outcome = fit(request);
    const std::vector<FitPoint>& curve = outcome.curve;
    ASSERT_EQ(curve.size(), 12U);
    EXPECT_EQ(curve.back().iteration, 60U);
    EXPECT_GT(curve.back().train_elbo, curve.front().train_elbo);
    EXPECT_GT(curve.back().held_out_elbo, curve.front().held_out_elbo);
    expect_whole(outcome.weights);
    EXPECT_EQ(outcome.weights.shape.workers, 6U);
    EXPECT_EQ(outcome.weights.note.steps, 80U);
    EXPECT_TRUE(std::any_of(curve.begin(), curve.end(), [&](const FitPoint& point) {
      return point.held_out_elbo == outcome.weights.note.held_out_elbo;
    }));
  }
}

TEST(Fit, IsTheSameToTheBitForTheSameSeed) {
  for (const Emission emission : kEmissions) {
    FitRequest request = request_of(halved_history(5, 50, 1), emission, 15);
    request.settings.workers_a_batch = 3;
    const ModelWeights first = fit(request).weights;
    EXPECT_EQ(first, fit(request).weights);
    request.settings.seed = 2;
    EXPECT_NE(first, fit(request).weights);
  }
}

// The results are finite numbers for any record.
TEST(Fit, SurvivesAnyRecord) {
  for (const uint64_t kind : {0U, 1U, 2U, 3U, 4U}) {
    History history;
    for (uint64_t t = 0; t < 40; ++t) {
      std::vector<PastTime> row;
      for (uint64_t i = 0; i < 4; ++i) {
        const double any = normal_draw({kind, t, i});
        const auto wild = static_cast<float>(std::clamp(1.0 / any, -80.0, 80.0));
        const uint64_t chosen = kind < 3 ? kind : draw({kind, t, i, 1}) % 3;
        if (chosen == 0) row.push_back(arrived(wild));
        if (chosen == 1) row.push_back({wild + 1.0F, wild, Known::kLonger});
        if (chosen == 2) row.push_back(kind == 2 ? arrived(3.0) : PastTime{});
      }
      history.add(t, row);
    }
    for (const Emission emission : kEmissions) {
      SCOPED_TRACE(std::to_string(kind) + " " + std::string(name_of(emission)));
      FitRequest request = request_of(history, emission, 20);
      request.settings.learning_rate = 0.1;
      const FitOutcome outcome = fit(request);
      expect_whole(outcome.weights);
      EXPECT_TRUE(std::isfinite(outcome.weights.note.held_out_elbo));
    }
  }
}

TEST(Fit, StopsWhenTheListenerSaysSo) {
  uint32_t last = 0;
  uint32_t judged = 0;
  const FitOutcome outcome = fit(request_of(wavy_history(4, 60, 1), Emission::kShared, 1000),
                                 [&](uint32_t iteration, const FitPoint* point) {
                                   EXPECT_EQ(iteration, last + 1);
                                   EXPECT_EQ(point != nullptr, iteration % 5 == 0);
                                   if (point != nullptr) ++judged;
                                   last = iteration;
                                   return iteration < 12;
                                 });
  EXPECT_EQ(last, 12U);
  EXPECT_EQ(judged, 2U);
  EXPECT_EQ(outcome.curve.size(), 2U);
  expect_whole(outcome.weights);
  expect_whole(
      fit(request_of(wavy_history(4, 60, 1), Emission::kShared, 1000), [](uint32_t,
                                                                          const FitPoint*) {
        return false;
      }).weights);
}

TEST(Fit, StopsWhenItGetsNoBetter) {
  FitRequest request = request_of(wavy_history(4, 60, 1), Emission::kShared, 1000);
  request.start = std::make_shared<const ModelWeights>(fit(request).weights);
  request.settings.learning_rate = 0.0;
  request.settings.patience = 3;
  EXPECT_EQ(fit(request).curve.size(), 3U);
}

TEST(Fit, WithoutJudgementTheLastIsKept) {
  FitRequest request = request_of(wavy_history(4, 60, 1), Emission::kWorkers, 10);
  request.settings.held_out = 0.0;
  const FitOutcome outcome = fit(request);
  ASSERT_EQ(outcome.curve.size(), 2U);
  EXPECT_TRUE(std::isnan(outcome.curve.back().held_out_elbo));
  EXPECT_TRUE(std::isfinite(outcome.curve.back().train_elbo));
  expect_whole(outcome.weights);
}

TEST(Fit, StartsFromAModelAndIsNeverWorse) {
  for (const Emission emission : kEmissions) {
    SCOPED_TRACE(name_of(emission));
    const History history = wavy_history(5, 60, 1);
    FitRequest request = request_of(history, emission, 60);
    const auto before = std::make_shared<const ModelWeights>(fit(request).weights);
    request.start = before;
    request.settings.iterations = 1;
    request.settings.learning_rate = 100.0;
    EXPECT_EQ(fit(request).weights.tensors, before->tensors)
        << "an update that is not finite is skipped";

    // Two more workers join.
    request.history = std::make_shared<const History>(wavy_history(7, 60, 1));
    request.settings.learning_rate = 0.0;
    const ModelWeights grown = fit(request).weights;
    expect_whole(grown);
    EXPECT_EQ(grown.shape.workers, 7U);
    EXPECT_EQ(grown.tensor("gate_1"), before->tensor("gate_1"));
    if (emission != Emission::kShared) continue;
    const std::vector<float>& embedding = grown.tensor("embedding").values;
    const size_t old = before->tensor("embedding").values.size();
    EXPECT_TRUE(std::equal(before->tensor("embedding").values.begin(),
                           before->tensor("embedding").values.end(), embedding.begin()));
    EXPECT_TRUE(std::all_of(embedding.begin() + static_cast<ptrdiff_t>(old), embedding.end(),
                            [](float value) { return value == 0.0F; }));
  }
}

TEST(Fit, TooLittleIsRefused) {
  const Result<FitFunction> function = load_fit_function();
  ASSERT_TRUE(function.ok());
  const Result<FitOutcome> outcome =
      function.value()(request_of(wavy_history(4, 9, 1), Emission::kShared, 10), {});
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error(), is_error(ErrorKind::kInvalidInput, 9));
}

}  // namespace
}  // namespace drover
