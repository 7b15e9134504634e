#include "cli/fit_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/test_text.h"

namespace drover {
namespace {

using ::testing::HasSubstr;

ForecasterCalibration found(double crps, double order_crps) {
  return {.steps = 200,
          .workers = {std::isnan(crps) ? 0U : 1000U, 0.503, 0.899, 0.987, crps},
          .order = {1000, 0.51, 0.91, 0.99, order_crps}};
}

FitSummary sample() {
  FitSummary summary;
  summary.model_file = "m.model";
  summary.sources = {"a.db", "b.db"};
  summary.shape = default_shape(Emission::kShared, 158);
  summary.note = {.seed = 7, .steps = 1000, .held_out_elbo = 1.1, .cut_short_share = 0.031};
  summary.held_out = 200;
  summary.iterations = 340;
  summary.iterations_limit = 400;
  summary.seconds = 41.26;
  summary.curve = {{240, 1.234, 1.1}, {340, 1.3, 0.9}};
  summary.judged = {{"shared", true, true, found(0.0341, 0.0123)},
                    {"workers", true, false, found(0.0361, 0.0141)},
                    {"ecdf", false, false, found(0.05, 0.03)},
                    {"ewma", false, false, found(0.06, 0.02)}};
  return summary;
}

TEST(FitReport, IsAShortTable) {
  EXPECT_EQ(to_text(sample()),
            "a.db, b.db: 1,000 steps x 158 workers, 3.1 % of run-times censored\n"
            "shared model, 340 of at most 400 iterations in 41.3 s; ELBO per run-time 1.234, held "
            "out 1.100 (iteration 240)\n"
            "\n"
            "Forecasts of the last 200 steps (held out):\n"
            "\n"
            "               coverage  coverage  coverage    CRPS of   CRPS of\n"
            "forecaster         50 %      90 %      99 %  run-times  arrivals\n"
            "shared (kept)    50.3 %    89.9 %    98.7 %     0.0341    0.0123\n"
            "workers          50.3 %    89.9 %    98.7 %     0.0361    0.0141\n"
            "ecdf             50.3 %    89.9 %    98.7 %     0.0500    0.0300\n"
            "ewma             50.3 %    89.9 %    98.7 %     0.0600    0.0200\n"
            "kept shared instead of workers: it forecasts arrivals more accurately\n"
            "saved m.model; use it with --policy bayes:model=m.model\n");
}

TEST(FitReport, SaysWhenASimpleForecasterIsBetter) {
  FitSummary summary = sample();
  const auto times_named = [&] {
    const std::string text = to_text(summary);
    size_t times = 0;
    for (size_t at = text.find("ewma"); at != text.npos; at = text.find("ewma", at + 1)) ++times;
    return times;
  };
  EXPECT_EQ(times_named(), 1u) << "in the table";
  summary.judged[3].calibration.order.crps = 0.01;
  EXPECT_EQ(times_named(), 3u) << "in the table and in the advice";
}

TEST(FitReport, JudgesAForecasterOfTheOrderByTheOrder) {
  FitSummary summary = sample();
  summary.judged[1] = {"sorted", true, false, found(std::nan(""), 0.02)};
  EXPECT_THAT(to_text(summary),
              HasSubstr("sorted           51.0 %    91.0 %    99.0 %          -    0.0200\n"));
}

TEST(FitReport, NamesThePolicyThatTakesTheModel) {
  FitSummary summary = sample();
  summary.shape.emission = Emission::kSorted;
  EXPECT_THAT(to_text(summary), mentions("--policy bayes-paper:model=m.model"));
}

TEST(FitReport, SaysThatItWasInterrupted) {
  FitSummary summary = sample();
  const std::string text = to_text(summary);
  summary.interrupted = true;
  const std::string interrupted = to_text(summary);
  EXPECT_EQ(std::count(interrupted.begin(), interrupted.end(), '\n'),
            std::count(text.begin(), text.end(), '\n') + 1)
      << interrupted;
  EXPECT_EQ(nlohmann::json::parse(to_json_line(summary))["interrupted"], true);
}

TEST(FitReport, WithoutHeldOutStepsTheLastPointIsTheKeptOne) {
  FitSummary summary = sample();
  summary.note.held_out_elbo = std::nan("");
  EXPECT_EQ(kept_point(summary).iteration, 340U);
}

TEST(FitReport, IsAlsoJson) {
  FitSummary summary = sample();
  summary.judged[2].calibration.workers.crps = std::nan("");
  const auto json = nlohmann::json::parse(to_json_line(summary));
  EXPECT_EQ(json["model"], "m.model");
  EXPECT_EQ(json["emission"], "shared");
  EXPECT_EQ(json["held_out_elbo"], 1.1);
  EXPECT_EQ(json["kept_iteration"], 240);
  EXPECT_EQ(json["interrupted"], false);
  ASSERT_EQ(json["forecasts"].size(), 4U);
  EXPECT_EQ(json["forecasts"][0]["kept"], true);
  EXPECT_EQ(json["forecasts"][0]["run_times"]["covered_90"], 0.899);
  EXPECT_EQ(json["forecasts"][1]["arrivals"]["crps"], 0.0141);
  EXPECT_TRUE(json["forecasts"][2]["run_times"]["crps"].is_null());
  EXPECT_EQ(json["curve"].size(), 2U);
}

TEST(ModelText, DescribesAModelFile) {
  ModelWeights weights{.shape = default_shape(Emission::kSorted, 600),
                       .note = {.seed = 3, .steps = 1500, .held_out_elbo = 0.25},
                       .tensors = {{"a", 1, 2, {1.0F, 2.0F}}}};
  EXPECT_EQ(model_text("m.model", weights),
            "m.model: sorted model of run-times, fitted to 1,500 steps x 600 workers\n"
            "seed 3, 0.0 % of run-times censored, held-out ELBO per run-time 0.250\n"
            "2 parameters; latent 16, window 20, rnn 64, transition 32, emission_hidden 64\n");
  const auto json = nlohmann::json::parse(model_json_line("m.model", weights));
  EXPECT_EQ(json["emission"], "sorted");
  EXPECT_EQ(json["shape"]["latent"], 16);
  EXPECT_FALSE(json["shape"].contains("components"));
}

}  // namespace
}  // namespace drover
