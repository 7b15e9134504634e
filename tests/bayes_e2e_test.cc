// End-to-end tests of the policy bayes. It fits models during a run, or starts with one from a
// file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/random_draw.h"
#include "core/test_text.h"
#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::Not;

// Workers of different speed with independent random delays. So no forecaster has an advantage.
void write_trace(const std::string& path, uint32_t steps, uint32_t workers) {
  std::ofstream text(path);
  text << "step";
  for (uint32_t worker = 0; worker < workers; ++worker) text << ",w" << worker;
  for (uint32_t step = 0; step < steps; ++step) {
    text << "\n" << step;
    for (uint32_t worker = 0; worker < workers; ++worker) {
      text << "," << 1.0 + 0.1 * worker + 0.3 * unit_interval(draw({1, step, worker}));
    }
  }
  text << "\n";
}

// A replay with its decisions. `json` has no numbers that depend on the machine's speed.
struct Replayed {
  nlohmann::json json;
  std::vector<std::string> decisions;  // by step: "step,policy,cutoff,..."
};
Replayed replay(const TemporaryFolder& folder, const Words& words) {
  const Outcome outcome =
      drover(Words{"replay", "--json", "--quiet", "--decisions", "d.csv"} + words, folder.path());
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  Replayed replayed{last_line_json(outcome.out), {}};
  for (const char* key : {"decision_us_p50", "decision_us_p99"}) replayed.json.erase(key);
  std::istringstream text(content_of(folder.file("d.csv")));
  std::string line;
  std::getline(text, line);
  while (std::getline(text, line)) replayed.decisions.push_back(line);
  return replayed;
}

// The first step after the warm-up.
constexpr size_t kFirst = 20;
// Before the first fit during the replay.
constexpr const char* kEarlySteps = ":28";

void fit(const TemporaryFolder& folder, const std::string& emission) {
  const Outcome outcome = drover({"fit", "--trace", "twelve.csv", "--out", emission + ".model",
                                  "--emission", emission, "--iterations", "5", "--quiet"},
                                 folder.path());
  ASSERT_EQ(outcome.status(), 0) << outcome.err;
}

TEST(Bayes, IsReproducibleWithModelsFittedDuringTheReplay) {
  const TemporaryFolder folder;
  write_trace(folder.file("t.csv"), 56, 3);
  const Words words = {"--trace", "t.csv", "--policy", "bayes:joint=off"};
  const Replayed first = replay(folder, words);
  ASSERT_EQ(first.decisions.size(), 56U);
  EXPECT_THAT(first.decisions[kFirst], AllOf(mentions("ecdf"), Not(mentions(30))));
  EXPECT_THAT(first.decisions[51], mentions("model", 30))
      << "the steps that the model was fitted to";
  const Replayed again = replay(folder, words);
  EXPECT_EQ(again.json, first.json);
  EXPECT_EQ(again.decisions, first.decisions);
  EXPECT_NE(replay(folder, words + Words{"--seed", "8"}).decisions, first.decisions);
}

TEST(Bayes, UsesAGivenModelFromTheFirstDecisionOn) {
  const TemporaryFolder folder;
  write_trace(folder.file("twelve.csv"), 60, 12);
  write_trace(folder.file("thirteen.csv"), 30, 13);
  write_trace(folder.file("thirty.csv"), 30, 30);
  for (const std::string emission : {"shared", "workers"}) {
    SCOPED_TRACE(emission);
    fit(folder, emission);
    const auto first_decision = [&](const std::string& trace) {
      const Replayed replayed =
          replay(folder, {"--trace", trace, "--steps", kEarlySteps, "--policy",
                          "bayes:joint=off:model=" + emission + ".model"});
      EXPECT_EQ(replayed.decisions.size(), 28U);
      return replayed.decisions.at(kFirst);
    };
    const auto used = mentions("model", 100, 60);
    EXPECT_THAT(first_decision("twelve.csv"), used);
    EXPECT_THAT(first_decision("thirteen.csv"), used) << "one more worker than in the model";
    if (emission == "shared") {
      EXPECT_THAT(first_decision("thirty.csv"), used) << "any number of workers";
    } else {
      EXPECT_THAT(first_decision("thirty.csv"),
                  AllOf(mentions("ecdf", 100, 12, 18, 30, "'shared'"), Not(mentions(60))));
    }
  }
}

TEST(Bayes, RefusesADamagedModel) {
  const TemporaryFolder folder;
  write_trace(folder.file("twelve.csv"), 60, 12);
  fit(folder, "shared");
  const std::string whole = content_of(folder.file("shared.model"));
  std::string changed = whole;
  changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 1);
  const auto refused = [&](const std::string& content) {
    std::ofstream(folder.file("bad.model"), std::ios::binary) << content;
    const Outcome outcome = drover(
        {"replay", "--trace", "twelve.csv", "--policy", "bayes:model=bad.model"}, folder.path());
    EXPECT_EQ(outcome.status(), 2);
    EXPECT_THAT(outcome.err, mentions("--policy", "bad.model"));
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  const size_t half = whole.size() / 2;
  EXPECT_THAT(refused(changed), Not(mentions(half)));
  EXPECT_THAT(refused(whole.substr(0, half)), mentions(half));
}

}  // namespace
}  // namespace drover::testing_support
