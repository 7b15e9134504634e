#include <gtest/gtest.h>

#include "fit/fit_module.h"
#include "fit/test_histories.h"

namespace drover {
namespace {

FitFunction loaded() {
  Result<FitFunction> fit = load_fit_function();
  EXPECT_TRUE(fit.ok()) << fit.error().message;
  return std::move(fit).value();
}

FitRequest request_of(History history, Emission emission = Emission::kShared) {
  FitRequest request;
  request.shape = default_shape(emission, history.workers());
  request.history = std::make_shared<const History>(std::move(history));
  request.settings.iterations = 60;
  if (emission != Emission::kShared) request.settings.foresight = 0.0;
  return request;
}

TEST(Fit, GetsBetter) {
  const Result<FitOutcome> outcome = loaded()(request_of(wavy_history(6, 80, 1)), {});
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  const std::vector<FitPoint>& curve = outcome.value().curve;
  ASSERT_EQ(curve.size(), 3U);
  EXPECT_EQ(curve.back().iteration, 60U);
  EXPECT_GT(curve.back().train_elbo, curve.front().train_elbo);
  EXPECT_GT(curve.back().held_out_elbo, curve.front().held_out_elbo);
}

}  // namespace
}  // namespace drover
