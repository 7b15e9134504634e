// Experiment files are parsed and checked before anything starts; errors name the line.
#include "experiment/experiment_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "core/test_text.h"
#include "experiment/experiment_plan.h"
#include "store/test_run.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;
using ::testing::Not;

constexpr const char* kScenario = R"([job]
model = "logistic"
data = "generated"
workers = 4
steps = 30
[run_time]
kind = "constant"
mean = 1.0
)";

constexpr const char* kGood = R"(about = "two policies"
target = "accuracy=0.9"
seeds = [1, 7]

[common]
evaluate_every = 10
steps = 50
lr = 0.2

[[place]]
name = "four workers"
scenario = "four.toml"
set = { shards = 1 }

[[variant]]
name = "sync"
set = { policy = "sync" }

[[variant]]
name = "static 3"
set = { policy = "static:k=3", steps = 60, deterministic = true }
)";

class ExperimentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.make_file("four.toml", kScenario);
    folder_.make_file("job.toml", "model = \"mlp\"\ndata = \"generated\"\nworkers = 2\n");
  }

  static std::string replaced(const std::string& from, const std::string& to) {
    std::string text = kGood;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }
  Result<ExperimentFile> parse(const std::string& text) const {
    return parse_experiment(text, folder_.file("grid.toml"));
  }
  Result<std::vector<Cell>> plan(const std::string& text) const {
    const auto file = parse(text);
    if (!file) return file.error();
    return plan_cells(file.value());
  }
  // The error of an experiment that cannot be planned.
  std::string complaint(const std::string& from, const std::string& to) const {
    const auto cells = plan(replaced(from, to));
    if (cells.ok()) return "nothing";
    EXPECT_THAT(cells.error().message, HasSubstr(folder_.file("grid.toml")));
    return cells.error().message;
  }

  TempFolder folder_;
};

TEST_F(ExperimentTest, ReadsAllKeys) {
  const auto file = parse(kGood);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file.value().about, "two policies");
  EXPECT_EQ(file.value().target, (Target{TargetKind::kAccuracy, 0.9}));
  EXPECT_THAT(file.value().seeds, ElementsAre(1, 7));
  ASSERT_EQ(file.value().places.size(), 1u);
  EXPECT_FALSE(file.value().places[0].real);
  EXPECT_EQ(file.value().places[0].path, folder_.file("four.toml"));
  ASSERT_EQ(file.value().variants.size(), 2u);
  EXPECT_FALSE(file.value().past_target);
}

TEST_F(ExperimentTest, HasACellForEachPlaceSeedAndVariantWithItsWholeCommand) {
  const auto cells = plan(kGood);
  ASSERT_TRUE(cells.ok()) << cells.error().message;
  ASSERT_EQ(cells.value().size(), 4u);
  std::vector<std::string> names;
  for (const Cell& cell : cells.value()) names.push_back(cell.name);
  EXPECT_THAT(names, ElementsAre("four-workers-sync-1", "four-workers-static-3-1",
                                 "four-workers-sync-7", "four-workers-static-3-7"));
  EXPECT_THAT(cells.value()[0].words,
              ElementsAre("simulate", folder_.file("four.toml"), "--seed", "1", "--steps", "50",
                          "--evaluate-every", "10", "--stop-at", "accuracy=0.9", "--lr", "0.2",
                          "--shards", "1", "--policy", "sync"));
  EXPECT_THAT(cells.value()[3].words,
              ElementsAre("simulate", folder_.file("four.toml"), "--seed", "7", "--steps", "60",
                          "--evaluate-every", "10", "--stop-at", "accuracy=0.9", "--lr", "0.2",
                          "--shards", "1", "--policy", "static:k=3", "--deterministic"));
  EXPECT_THAT(cells.value()[3].identity, HasSubstr("drover simulate four.toml --seed 7"));
}

TEST_F(ExperimentTest, ContinuesPastTheTargetWithPastTarget) {
  const auto cells = plan(replaced("seeds =", "past_target = true\nseeds ="));
  ASSERT_TRUE(cells.ok()) << cells.error().message;
  const auto& words = cells.value()[0].words;
  const auto flag = std::find(words.begin(), words.end(), "--stop-at");
  ASSERT_NE(flag, words.end());
  EXPECT_EQ(*(flag + 1), "");
}

TEST_F(ExperimentTest, RealPlacesMayHaveABesideCommand) {
  const auto cells =
      plan(replaced("scenario = \"four.toml\"", "job = \"job.toml\"\nbeside = \"sleep 1000\""));
  ASSERT_TRUE(cells.ok()) << cells.error().message;
  EXPECT_TRUE(cells.value()[0].real);
  EXPECT_EQ(cells.value()[0].words.front(), "train");
  EXPECT_THAT(cells.value()[0].beside, ElementsAre("sleep", "1000"));
  EXPECT_THAT(cells.value()[0].identity, HasSubstr("beside sleep 1000"));
  const auto listed = plan(replaced("scenario = \"four.toml\"",
                                    "job = \"job.toml\"\nbeside = [\"sh\", \"-c\", \"a; b\"]"));
  ASSERT_TRUE(listed.ok()) << listed.error().message;
  EXPECT_THAT(listed.value()[0].beside, ElementsAre("sh", "-c", "a; b"));
}

TEST_F(ExperimentTest, TheIdentityOfACellDependsOnTheFilesItReads) {
  const std::string before = plan(kGood).value()[0].identity;
  EXPECT_EQ(plan(kGood).value()[0].identity, before);
  folder_.make_file("four.toml", std::string(kScenario) + "# a remark\n");
  EXPECT_NE(plan(kGood).value()[0].identity, before);
  folder_.make_file("four.toml", kScenario);
  EXPECT_EQ(plan(replaced("two policies", "the same")).value()[0].identity, before);
  EXPECT_NE(plan(replaced("lr = 0.2", "lr = 0.3")).value()[0].identity, before);
}

TEST_F(ExperimentTest, ReportsErrorsInTopLevelKeys) {
  EXPECT_THAT(complaint("seeds =", "seds ="), AllOf(mentions("seds"), proposes("seeds")));
  EXPECT_THAT(complaint("seeds = [1, 7]", ""), mentions("seeds"));
  const std::string no_list = complaint("[1, 7]", "3");
  EXPECT_THAT(no_list, mentions("seeds", "[1, 2, 3]"));
  EXPECT_EQ(complaint("[1, 7]", "[]"), no_list);
  EXPECT_THAT(complaint("[1, 7]", "[1, 1]"),
              AllOf(mentions("seeds", 1), Not(mentions("[1, 2, 3]"))));
  const std::string wrong_number = complaint("[1, 7]", "[1, -1]");
  EXPECT_THAT(wrong_number, AllOf(mentions("seeds"), Ne(no_list)));
  EXPECT_EQ(complaint("[1, 7]", "[1.5]"), wrong_number);
  EXPECT_THAT(complaint("accuracy=0.9", "accuracy=90"), mentions("target", "accuracy=90"));
  EXPECT_THAT(complaint("accuracy=0.9", "acuracy=0.9"),
              AllOf(mentions("target", "acuracy=0.9"), proposes("accuracy")));
  EXPECT_THAT(complaint("[[variant]]\nname = \"sync\"", "[[varriant]]\nname = \"sync\""),
              AllOf(mentions("varriant"), proposes("variant")));
  const auto nothing = parse("");
  ASSERT_FALSE(nothing.ok());
  EXPECT_THAT(nothing.error().message, mentions("target", "place", "variant"));
}

TEST_F(ExperimentTest, ReportsErrorsInPlacesAndVariants) {
  EXPECT_THAT(complaint("policy = \"sync\"", "polcy = \"sync\""),
              AllOf(mentions("grid.toml:17", "'sync'", "polcy"), proposes("policy")));
  EXPECT_THAT(complaint("policy = \"sync\"", "policy = \"synk\""),
              AllOf(mentions("grid.toml:17", "policy", "synk"), proposes("sync")));
  EXPECT_THAT(complaint("policy = \"sync\"", "seed = 3"),
              mentions("grid.toml:17", "'sync'", "seed", "seeds"));
  EXPECT_THAT(complaint("shards = 1", "stop_at = \"loss=1\""),
              mentions("'four workers'", "stop_at", "target"));
  EXPECT_THAT(complaint("lr = 0.2", "lr = \"fast\""), mentions("[common]", "lr", "fast"));
  EXPECT_THAT(complaint("set = { shards = 1 }", "set = 3"), mentions("grid.toml:13", "set"));
  EXPECT_THAT(complaint("name = \"static 3\"", "name = \"sync\""), mentions("'sync'", "name"));
  const std::string unnamed = complaint("name = \"static 3\"\n", "");
  EXPECT_THAT(unnamed, mentions("grid.toml:19", "[[variant]]", "name"));
  EXPECT_THAT(complaint("name = \"static 3\"", "name = \"\""), mentions("grid.toml:20", "name"));
  EXPECT_THAT(complaint("scenario = \"four.toml\"", ""),
              mentions("grid.toml:10", "scenario", "job"));
  EXPECT_THAT(complaint("scenario = \"four.toml\"", "scenario = \"four.toml\"\njob = \"j\""),
              mentions("grid.toml:10", "scenario", "job"));
  EXPECT_THAT(complaint("scenario =", "beside = \"sleep 1\"\nscenario ="),
              AllOf(mentions("grid.toml:12", "beside", "scenario"), Not(mentions("job"))));
}

TEST_F(ExperimentTest, ReportsCellsThatCannotRun) {
  const auto where = mentions("'four workers'", "'sync'");
  EXPECT_THAT(complaint("four.toml", "five.toml"),
              AllOf(where, mentions("five.toml", std::strerror(ENOENT))));
  folder_.make_file("bad.toml", "nodez = 3\n");
  EXPECT_THAT(complaint("four.toml", "bad.toml"),
              AllOf(where, mentions("bad.toml:1:1", "nodez"), proposes("nodes")));
  EXPECT_THAT(complaint("evaluate_every = 10", "evaluate_every = 0"),
              AllOf(where, mentions("evaluate_every", 0)));
  EXPECT_THAT(complaint("seeds =", "past_target = true\nseeds ="), "nothing");
  EXPECT_THAT(complaint("policy = \"sync\"", "min_contributors = 9"),
              AllOf(where, mentions("min_contributors", 4, 9)));
  EXPECT_THAT(complaint("policy = \"sync\"", "model = \"lenett\""),
              AllOf(where, mentions("lenett", "lenet")));
  EXPECT_THAT(complaint("policy = \"sync\"", "slow = [\"worker=1,factor=2\"]"),
              AllOf(where, mentions("[[slow]]")));
  EXPECT_THAT(complaint("scenario = \"four.toml\"", "job = \"none.toml\""),
              AllOf(where, mentions("none.toml")));
  EXPECT_THAT(complaint("scenario = \"four.toml\"",
                        "job = \"job.toml\"\nbeside = \"no-such-command-here 3\""),
              mentions("'four workers'", "beside", "no-such-command-here"));
  EXPECT_THAT(complaint("scenario = \"four.toml\"", "job = \"job.toml\"\nbeside = \"a | b\""),
              mentions("grid.toml:13", "beside", "[\"sh\", \"-c\", \"...\"]"));
  // The oracle policy needs future run-times, which real processes do not have.
  const auto oracle = plan(
      replaced("scenario = \"four.toml\"", "job = \"job.toml\"")
          .replace(replaced("scenario = \"four.toml\"", "job = \"job.toml\"").find("\"sync\" }"), 8,
                   "\"oracle\" }"));
  ASSERT_FALSE(oracle.ok());
  EXPECT_THAT(oracle.error().message, mentions("oracle"));
}

TEST_F(ExperimentTest, RefusesTwoCellsWithOneFileName) {
  EXPECT_THAT(complaint("name = \"static 3\"", "name = \"sync \""), "nothing");
  EXPECT_THAT(complaint("name = \"sync\"", "name = \"static/3\""),
              mentions("four-workers-static-3-1"));
}

// The example experiments must be valid.
TEST(ExampleExperiments, ArePlannedWithoutErrors) {
  size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(DROVER_SOURCE_DIR) +
                                                               "/examples/experiments")) {
    if (entry.path().extension() != ".toml") continue;
    ++found;
    SCOPED_TRACE(entry.path().string());
    auto file = read_experiment_file(entry.path().string());
    ASSERT_TRUE(file.ok()) << file.error().message;
    // The `beside` command need not be installed on the machine that runs the tests.
    for (Place& place : file.value().places) place.beside.clear();
    const auto cells = plan_cells(file.value());
    EXPECT_TRUE(cells.ok()) << cells.error().message;
  }
  EXPECT_GT(found, 0u);
}

}  // namespace
}  // namespace drover
