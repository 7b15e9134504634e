// Means are over cells that reached the target, and tables show how many did. Ratios compare equal
// seeds.
#include "experiment/experiment_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/test_text.h"

namespace drover {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Bootstrap, NeedsTwoValuesAndIsDeterministic) {
  EXPECT_FALSE(bootstrap_mean(std::vector<double>{}).has_value());
  EXPECT_FALSE(bootstrap_mean(std::vector<double>{3.0}).has_value());
  const std::vector<double> values = {1.0, 4.0, 2.0, 8.0};
  const auto once = bootstrap_mean(values).value();
  const auto twice = bootstrap_mean(values).value();
  EXPECT_EQ(once.low, twice.low);
  EXPECT_EQ(once.high, twice.high);
  EXPECT_LT(once.low, mean_of(values));
  EXPECT_GT(once.high, mean_of(values));
}

// If half of n values are 0 and half are 1, the number of ones in a draw is binomial. For n = 2 the
// mean is 0 with probability 1/4, so the interval is [0, 1]. For large n it is
// 1/2 +- 1.96 / (2 sqrt n).
TEST(Bootstrap, HasTheSpreadOfABinomial) {
  const auto two = bootstrap_mean(std::vector<double>{0.0, 1.0}).value();
  EXPECT_DOUBLE_EQ(two.low, 0.0);
  EXPECT_DOUBLE_EQ(two.high, 1.0);
  std::vector<double> many(400);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i % 2);
  const auto wide = bootstrap_mean(many).value();
  EXPECT_NEAR(wide.low, 0.5 - 1.96 / 40.0, 0.003);
  EXPECT_NEAR(wide.high, 0.5 + 1.96 / 40.0, 0.003);
  const auto same = bootstrap_mean(std::vector<double>{2.0, 2.0, 2.0}).value();
  EXPECT_DOUBLE_EQ(same.low, 2.0);
  EXPECT_DOUBLE_EQ(same.high, 2.0);
}

ExperimentFile two_variants() {
  ExperimentFile file;
  file.path = "grid.toml";
  file.about = "two, compared";
  file.target = {TargetKind::kAccuracy, 0.9};
  file.seeds = {1, 2, 3};
  file.places = {{.name = "calm"}};
  file.variants = {{.name = "sync"}, {.name = "quick, \"live\""}};
  return file;
}

CellResult reached(size_t variant, uint64_t seed, double seconds) {
  return {0,
          variant,
          seed,
          {.reached = true,
           .seconds = seconds,
           .trained_seconds = 10.0,
           .steps = 100,
           .best = 0.91,
           .gradients = 400,
           .contributors_mean = 4.0,
           .idle_share = 0.25}};
}
CellResult not_reached(size_t variant, uint64_t seed) {
  return {0,
          variant,
          seed,
          {.seconds = 500.0,
           .trained_seconds = 500.0,
           .steps = 300,
           .best = 0.84,
           .contributors_mean = 2.0}};
}
CellResult failed(size_t variant, uint64_t seed) {
  return {0, variant, seed, {.failed = true, .reason = "training diverged"}};
}

TEST(ExperimentSummary, RatiosCompareEqualSeeds) {
  // Seeds differ far more than variants. Only the pairing shows that the second is twice as fast.
  const auto places =
      summarize(two_variants(), {reached(0, 1, 10.0), reached(1, 1, 5.0), reached(0, 2, 100.0),
                                 reached(1, 2, 50.0), reached(0, 3, 1000.0), reached(1, 3, 500.0)});
  const VariantSummary& first = places[0].variants[0];
  const VariantSummary& second = places[0].variants[1];
  EXPECT_DOUBLE_EQ(first.seconds->mean, 370.0);
  EXPECT_DOUBLE_EQ(first.seconds->best, 10.0);
  EXPECT_DOUBLE_EQ(first.seconds->worst, 1000.0);
  EXPECT_DOUBLE_EQ(first.ratio.value(), 1.0);
  EXPECT_DOUBLE_EQ(second.ratio.value(), 0.5);
  EXPECT_DOUBLE_EQ(second.ratio_interval->low, 0.5);
  EXPECT_DOUBLE_EQ(second.ratio_interval->high, 0.5);
  EXPECT_EQ(second.pairs, 3u);
  EXPECT_DOUBLE_EQ(second.steps.value(), 100.0);
  EXPECT_DOUBLE_EQ(second.idle_share.value(), 0.25);
}

TEST(ExperimentSummary, CellsThatDoNotReachTheTargetAreCountedButNotAveraged) {
  const auto places =
      summarize(two_variants(), {reached(0, 1, 10.0), not_reached(1, 1), reached(0, 2, 20.0),
                                 reached(1, 2, 10.0), reached(0, 3, 30.0), failed(1, 3)});
  const VariantSummary& second = places[0].variants[1];
  EXPECT_EQ(second.cells, 3u);
  EXPECT_EQ(second.reached, 1u);
  EXPECT_EQ(second.failed, 1u);
  EXPECT_DOUBLE_EQ(second.seconds->mean, 10.0);
  EXPECT_FALSE(second.seconds->interval.has_value());
  EXPECT_EQ(second.pairs, 1u);
  EXPECT_DOUBLE_EQ(second.ratio.value(), 0.5);
  EXPECT_DOUBLE_EQ(second.contributors.value(), 3.0) << "of the two that did not fail";
  EXPECT_THAT(second.notes, ElementsAre(mentions("quick, \"live\"", 1, 300, "accuracy", "0.84"),
                                        mentions("quick, \"live\"", 3, "training diverged")));
  const std::string text = to_text(two_variants(), places);
  EXPECT_THAT(text, HasSubstr("1/3"));
  EXPECT_THAT(text, HasSubstr("10 s*"));
  EXPECT_THAT(text, HasSubstr("0.50*"));
  for (const std::string& note : second.notes) EXPECT_THAT(text, HasSubstr(note));
  EXPECT_THAT(to_markdown(two_variants(), places), HasSubstr("\n\\* ")) << "the footnote";
}

TEST(ExperimentTable, AVariantThatNeverReachesTheTargetHasNoTime) {
  const auto places = summarize(two_variants(), {reached(0, 1, 10.0), failed(1, 1)});
  EXPECT_FALSE(places[0].variants[1].seconds.has_value());
  const std::string text = to_text(two_variants(), places);
  EXPECT_THAT(text, HasSubstr("0/1"));
  EXPECT_THAT(text, Not(HasSubstr("*")));
}

TEST(ExperimentTable, IsAligned) {
  const std::string text = to_text(
      two_variants(), summarize(two_variants(), {reached(0, 1, 1234.5), reached(1, 1, 5.25),
                                                 reached(0, 2, 1000.0), reached(1, 2, 6.5)}));
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_THAT(lines[0], mentions("calm", "accuracy=0.9"));
  for (size_t i = 3; i < 6; ++i) EXPECT_EQ(lines[i].size(), lines[2].size()) << lines[i];
  EXPECT_THAT(lines[4], HasSubstr("1117 s"));
  EXPECT_THAT(lines[5], HasSubstr("5.88 s"));
}

TEST(ExperimentTable, FilesForOtherPrograms) {
  const std::vector<CellResult> results = {reached(0, 1, 10.5), not_reached(1, 1)};
  const ExperimentFile file = two_variants();
  const auto places = summarize(file, results);
  EXPECT_EQ(results_csv(file, results),
            "place,variant,seed,state,seconds,trained_seconds,steps,gradients,contributors_mean,"
            "idle_share,best,"
            "reason\n"
            "calm,sync,1,reached,10.5,10,100,400,4,0.25,0.91,\n"
            "calm,\"quick, \"\"live\"\"\",1,not reached,500,500,300,0,2,,0.84,\n");
  EXPECT_THAT(summary_csv(file, places),
              HasSubstr("calm,sync,1,1,0,10.5,10.5,10.5,,,1,,,1,100,400,4,0.25\n"));
  const auto json = nlohmann::json::parse(to_json_line(file, places, "out"));
  EXPECT_EQ(json["target"], "accuracy=0.9");
  EXPECT_EQ(json["places"][0]["variants"][0]["seconds_mean"], 10.5);
  EXPECT_TRUE(json["places"][0]["variants"][0]["seconds_low"].is_null());
  EXPECT_TRUE(json["places"][0]["variants"][1]["seconds_mean"].is_null());
}

}  // namespace
}  // namespace drover
