// End-to-end tests of drover fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/random_draw.h"
#include "core/test_text.h"
#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Workers of different speed in a cluster with slow and fast periods of ten steps.
std::string csv(uint32_t steps, uint32_t workers) {
  std::ostringstream text;
  text << "step";
  for (uint32_t worker = 0; worker < workers; ++worker) text << ",w" << worker;
  for (uint32_t step = 0; step < steps; ++step) {
    text << "\n" << step;
    const double spell = unit_interval(draw({1, step / 10}));
    for (uint32_t worker = 0; worker < workers; ++worker) {
      text << "," << 1.0 + 0.1 * worker + spell + 0.1 * unit_interval(draw({2, step, worker}));
    }
  }
  text << "\n";
  return text.str();
}

void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

Outcome fit(const TemporaryFolder& folder, const Words& words) {
  return drover(Words{"fit"} + words, folder.path());
}

TEST(Fit, FitsAModelToATraceAndPrintsItsScores) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(150, 6));
  const Outcome outcome =
      fit(folder, {"--trace", "t.csv", "--out", "m.model", "--iterations", "40", "--quiet"});
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(mentions("t.csv", 150, 6, 40, 30), HasSubstr("\nshared"),
                                 HasSubstr("\nworkers"), HasSubstr("\necdf"), HasSubstr("\newma"),
                                 mentions("--policy bayes:model=m.model")));
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_THAT(names_in(folder.path()), ElementsAre("m.model", "t.csv"));

  const Outcome shown = fit(folder, {"--show", "m.model"});
  EXPECT_EQ(shown.status(), 0) << shown.err;
  EXPECT_THAT(shown.out, mentions("m.model", 150, 6));
  EXPECT_EQ(last_line_json(fit(folder, {"--show", "m.model", "--json"}).out)["workers"], 6);

  const Outcome used = drover({"replay", "--trace", "t.csv", "--policy", "bayes:model=m.model",
                               "--json", "--quiet", "--steps", ":40"},
                              folder.path());
  EXPECT_EQ(used.status(), 0) << used.err;
  EXPECT_GT(last_line_json(used.out)["oracle_share_total"], 0.5);
}

TEST(Fit, IsReproducibleAndReplacesAModel) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(120, 4));
  const Words words = {"--trace", "t.csv",   "--out",      "m.model", "--iterations",
                       "20",      "--quiet", "--emission", "shared",  "--json"};
  const Outcome first = fit(folder, words);
  ASSERT_EQ(first.status(), 0) << first.err;
  const std::string model = content_of(folder.file("m.model"));
  ASSERT_EQ(fit(folder, words).status(), 0);
  EXPECT_EQ(content_of(folder.file("m.model")), model) << "equal seeds, equal models";
  ASSERT_EQ(fit(folder, words + Words{"--seed", "2"}).status(), 0);
  EXPECT_NE(content_of(folder.file("m.model")), model);

  const nlohmann::json json = last_line_json(first.out);
  EXPECT_EQ(json["emission"], "shared");
  EXPECT_EQ(json["steps"], 120);
  EXPECT_EQ(json["held_out_steps"], 24);
  EXPECT_EQ(json["iterations"], 20);
  ASSERT_EQ(json["forecasts"].size(), 3U);
  EXPECT_EQ(json["forecasts"][0]["kept"], true);
  EXPECT_GT(json["forecasts"][0]["run_times"]["crps"], 0.0);
  EXPECT_EQ(json["forecasts"][1]["run_times"]["judged"], 24 * 4);
}

TEST(Fit, AcceptsRunsWithCensoredTimes) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(80, 5));
  write(folder.file("other.csv"), csv(80, 6));
  for (const std::string name : {"t", "other"}) {
    ASSERT_EQ(drover({"replay", "--trace", name + ".csv", "--policy", "static:0.6", "--save",
                      name + ".db", "--quiet"},
                     folder.path())
                  .status(),
              0);
  }
  const Words words = {"--out",   "m.model",    "--iterations", "20",
                       "--quiet", "--emission", "shared",       "--json"};
  const Outcome outcome = fit(folder, words + Words{"--run", "t.db", "t.db"});
  ASSERT_EQ(outcome.status(), 0) << outcome.err;
  const nlohmann::json json = last_line_json(outcome.out);
  EXPECT_EQ(json["steps"], 160);
  EXPECT_NEAR(json["cut_short_share"], 0.4, 1e-6);
  const Outcome refused = fit(folder, words + Words{"--run", "t.db", "other.db"});
  EXPECT_EQ(refused.status(), 1);
  EXPECT_THAT(refused.err, mentions("t.db", 5, "other.db", 6));
}

TEST(Fit, InterruptedKeepsTheBestSoFar) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(400, 40));
  Result<Process> process =
      Process::start({.words = {DROVER_BINARY, "fit", "--trace", "t.csv", "--out", "m.model",
                                "--progress", "--iterations", "100000", "--json"},
                      .environment = {},
                      .directory = folder.path()});
  ASSERT_TRUE(process.ok()) << process.error().message;
  const auto line = process.value().wait_for_line("ELBO", kRunPatience);
  ASSERT_TRUE(line.ok()) << line.error().message;
  process.value().signal(SIGINT);
  const auto ending = process.value().wait(kRunPatience);
  ASSERT_TRUE(ending.ok()) << ending.error().message;
  EXPECT_EQ(ending.value().exit_code, 130);
  const nlohmann::json json = last_line_json(process.value().output(Output::kStdout));
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_EQ(json["emission"], "shared") << "the other fit was not started";
  EXPECT_EQ(fit(folder, {"--show", "m.model"}).status(), 0);
}

void expect_error(const Words& words, int status, const ::testing::Matcher<std::string>& error) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(30, 3));
  const Outcome outcome = fit(folder, words);
  EXPECT_EQ(outcome.status(), status) << outcome.err;
  EXPECT_THAT(outcome.err, error);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(names_in(folder.path()), ElementsAre("t.csv")) << "nothing is begun";
  EXPECT_EQ(content_of(folder.file("t.csv")), csv(30, 3));
}

TEST(Fit, ReportsWrongInput) {
  expect_error({"--out", "m"}, 2, mentions("--trace", "--run"));
  expect_error({"--trace", "t.csv"}, 2, mentions("--out"));
  expect_error({"--trace", "t.csv", "--run", "t.csv", "--out", "m"}, 2,
               mentions("--trace", "--run"));
  expect_error({"--trace", "t.csv", "--out", "m", "--emission", "shard"}, 2,
               mentions("'shard'", "shared", "auto"));
  expect_error({"--trace", "t.csv", "--out", "m", "--iterations", "0"}, 2,
               mentions("--iterations"));
  expect_error({"--trace", "t.csv", "--out", "m", "--steps", "9"}, 2,
               mentions("--steps", "100:200"));
  expect_error({"--trace", "t.csv", "--out", "m", "--steps", "20:99"}, 1,
               mentions("--steps", 20, 98, 30));
  expect_error({"--trace", "t.csv", "--out", "."}, 1, mentions("--out"));
  expect_error({"--trace", "t.csv", "--out", "no/m"}, 1, mentions("no/m"));
  expect_error({"--trace", "t.csv", "--out", "t.csv"}, 1, mentions("t.csv", "--out"));
  expect_error({"--trace", "none.csv", "--out", "m"}, 1, mentions("none.csv"));
  expect_error({"--run", "t.csv", "--out", "m"}, 1, mentions("t.csv"));
  expect_error({"--show", "t.csv"}, 1, mentions("t.csv", "drover fit"));
  expect_error({"--show", "t.csv", "--out", "m"}, 2, mentions("--show"));
  expect_error({"--trace", "t.csv", "--out", "m", "--steps", ":9", "--emission", "workers"}, 1,
               mentions(9, 20));
}

TEST(Fit, WithTooFewStepsForOneEmissionKeepsTheOther) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(24, 3));
  const Outcome outcome = fit(
      folder, {"--trace", "t.csv", "--out", "m.model", "--iterations", "20", "--quiet", "--json"});
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_EQ(last_line_json(outcome.out)["emission"], "shared");
  EXPECT_THAT(outcome.err, mentions("workers", 24));
}

}  // namespace
}  // namespace drover::testing_support
