// End-to-end tests of drover simulate: the run file of a scenario, and errors in scenarios.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/test_text.h"
#include "store/database.h"
#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Six workers of which one is four times slower, one dies, and one joins late.
constexpr const char* kSmall = R"(about = "six workers, one of them slow"
nodes = 2

[job]
model = "logistic"
data = "generated"
generated_samples = 256
workers = 6
shards = 2
steps = 40
batch = 4
policy = "ecdf"
policy_warmup = 5

[run_time]
kind = "lognormal"
mean = 1.0
deviation = 0.1

[[slow]]
workers = 3
factor = 4.0

[[death]]
worker = 1
step = 20

[[join]]
worker = 5
step = 10
)";

void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Outcome simulate(const TemporaryFolder& folder, const Words& words) {
  return drover(Words{"simulate"} + words, folder.path());
}

// All rows of all tables of a run file, except values that depend on the time and the name.
std::map<std::string, std::vector<std::string>> tables_of(const std::string& path) {
  const auto database = Database::open(path, Database::Mode::kReadOnly);
  EXPECT_TRUE(database.ok()) << database.error().message;
  const auto texts = [&](const std::string& query) {
    const auto rows =
        database.value().query(query, [](const Statement& row) { return row.text(0); });
    EXPECT_TRUE(rows.ok()) << query << ": " << rows.error().message;
    return rows.value();
  };
  std::map<std::string, std::vector<std::string>> tables;
  for (const std::string& table : texts("SELECT name FROM sqlite_schema WHERE type = 'table'")) {
    std::string row = "''";
    for (const std::string& column : texts("SELECT name FROM pragma_table_info('" + table + "')")) {
      if (column == "started" || column == "command") continue;
      row += " || '|' || quote(" + column + ")";
    }
    const std::string where = table == "settings" ? " WHERE key <> 'run_file'" : "";
    tables[table] = texts("SELECT " + row + " FROM " + table + where);
  }
  return tables;
}

TEST(Simulate, TrainsAndRecordsLikeALiveRun) {
  const TemporaryFolder folder;
  write(folder.file("small.toml"), kSmall);
  const Outcome outcome = simulate(folder, {"small.toml", "--run-file", "run.db", "--json"});
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_THAT(outcome.err, mentions("six workers, one of them slow", "worker 1"));
  const auto summary = last_line_json(outcome.out);
  EXPECT_EQ(summary["outcome"], "completed");
  EXPECT_EQ(summary["steps"], 40);
  EXPECT_EQ(summary["workers"], 6);
  EXPECT_EQ(summary["shards"], 2);
  EXPECT_EQ(summary["scenario"], "small.toml");
  EXPECT_GT(summary["test_accuracy"], 0.5);
  EXPECT_GT(summary["gradients_left_behind"], 20) << "worker 3, once the warm-up is over";
  EXPECT_GT(summary["seconds"], 40.0) << "virtual time, at least 1 s per step";
  EXPECT_LT(summary["step_seconds_median"], 2.0) << "worker 3 takes four seconds";
  const Outcome runs = drover({"runs", "run.db"}, folder.path());
  EXPECT_THAT(runs.out, mentions("small.toml", "worker 3", "worker 1", 20));
}

// From step 5 on one of the workers sends gradients that are multiplied by -100.
TEST(Simulate, AGuardProtectsTheModelAndReportsTheByzantineWorker) {
  const TemporaryFolder folder;
  std::string byzantine = replaced(kSmall, "factor = 4.0", "factor = 1.0");
  byzantine = replaced(byzantine, "policy = \"ecdf\"", "policy = \"sync\"");
  byzantine = replaced(byzantine, "steps = 40", "steps = 60");
  byzantine += "\n[[byzantine]]\nworker = 2\nfactor = -100.0\nstep = 5\n";
  write(folder.file("byzantine.toml"), byzantine);
  const auto run = [&](const std::string& guard) {
    const Outcome outcome = simulate(folder, {"byzantine.toml", "--guard", guard, "--run-file",
                                              guard + ".db", "--json", "--quiet"});
    EXPECT_EQ(outcome.status(), 0) << outcome.err;
    return last_line_json(outcome.out);
  };
  const auto off = run("off");
  EXPECT_LT(off["test_accuracy"], 0.5) << "without a guard the model is ruined";
  EXPECT_TRUE(off["outliers"].empty());
  for (const std::string guard : {"norm", "refuse"}) {
    SCOPED_TRACE(guard);
    const auto summary = run(guard);
    EXPECT_GT(summary["test_accuracy"], 0.9);
    ASSERT_FALSE(summary["outliers"].empty());
    EXPECT_EQ(summary["outliers"][0]["worker"], 2);
    EXPECT_EQ(summary["outliers"][0]["steps"], 55) << "in all steps with the fault";
    const Outcome runs = drover({"runs", guard + ".db"}, folder.path());
    EXPECT_THAT(runs.out, mentions("worker 2", 55));
  }
}

TEST(Simulate, OneSeedGivesOneRunFileExceptForNameAndTime) {
  const TemporaryFolder folder;
  write(folder.file("small.toml"), kSmall);
  const auto tables = [&](const std::string& name, const Words& words) {
    const Outcome outcome =
        simulate(folder, Words{"small.toml", "--quiet", "--run-file", name} + words);
    EXPECT_EQ(outcome.status(), 0) << outcome.err;
    return tables_of(folder.file(name));
  };
  const auto first = tables("first.db", {});
  EXPECT_EQ(first.at("steps").size(), 40u);
  EXPECT_EQ(tables("again.db", {}), first);
  EXPECT_NE(tables("other.db", {"--seed", "2"}).at("arrivals"), first.at("arrivals"));
}

TEST(Simulate, ARecordedRunCanBeReplayed) {
  const TemporaryFolder folder;
  write(folder.file("small.toml"), kSmall);
  const Outcome outcome =
      simulate(folder, {"small.toml", "--quiet", "--run-file", "run.db", "--policy", "sync"});
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  const Outcome replay = drover(
      {"replay", "--trace", "run.db", "--policy", "sync,ecdf", "--policy-warmup", "5", "--json"},
      folder.path());
  EXPECT_EQ(replay.status(), 0) << replay.err;
  const auto ecdf = last_line_json(replay.out);
  EXPECT_EQ(ecdf["steps"], 40);
  EXPECT_EQ(ecdf["workers"], 6);
  EXPECT_LT(ecdf["time_vs_sync"], 0.6) << "without worker 3 a step takes a quarter";
}

TEST(Simulate, FlagsOverrideTheScenario) {
  const TemporaryFolder folder;
  write(folder.file("small.toml"), replaced(kSmall, "worker = 5", "worker = 8"));
  const Outcome outcome = simulate(
      folder, {"small.toml", "--run-file", "run.db", "--json", "--workers", "9", "--steps", "3"});
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_EQ(last_line_json(outcome.out)["workers"], 8) << "the ninth joins in step 10";
  EXPECT_EQ(last_line_json(outcome.out)["steps"], 3);
}

TEST(Simulate, InterruptedKeepsTheRecordedSteps) {
  const TemporaryFolder folder;
  write(folder.file("small.toml"), kSmall);
  Result<Process> process =
      Process::start({.words = {DROVER_BINARY, "simulate", "small.toml", "--run-file", "run.db",
                                "--steps", "100000000"},
                      .environment = {{"TERM", "dumb"}},
                      .directory = folder.path()});
  ASSERT_TRUE(process.ok()) << process.error().message;
  const auto line = process.value().wait_for_line("/100000000", kRunPatience);
  ASSERT_TRUE(line.ok()) << line.error().message;
  process.value().signal(SIGINT);
  const auto ending = process.value().wait(kRunPatience);
  ASSERT_TRUE(ending.ok()) << ending.error().message;
  EXPECT_EQ(ending.value().exit_code, 130);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("run.db", "small.toml"));
  const auto summary = last_line_json(drover({"runs", "run.db", "--json"}, folder.path()).out);
  EXPECT_EQ(summary["outcome"], "interrupted");
  EXPECT_GT(summary["steps"], 0);
}

TEST(Simulate, AHuntReportsThatItFoundNothing) {
  const TemporaryFolder folder;
  const Outcome outcome = simulate(folder, {"--hunt", "50"});
  EXPECT_EQ(outcome.status(), 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, mentions(50));
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
  const Outcome again = simulate(folder, {"--hunt", "50", "--json"});
  EXPECT_EQ(last_line_json(again.out)["found"], 0);
}

void expect_error(const std::string& scenario, const Words& words,
                  const ::testing::Matcher<std::string>& error) {
  const TemporaryFolder folder;
  write(folder.file("s.toml"), scenario);
  const Outcome outcome = simulate(folder, words);
  EXPECT_EQ(outcome.status(), 2) << outcome.err;
  EXPECT_THAT(outcome.err, error);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(names_in(folder.path()), ElementsAre("s.toml")) << "no run was started";
}

TEST(Simulate, ErrorsInScenariosNameFileAndLine) {
  const auto change = [](const std::string& from, const std::string& to,
                         const ::testing::Matcher<std::string>& error) {
    expect_error(replaced(kSmall, from, to), {"s.toml"}, error);
  };
  change("factor = 4.0", "facotr = 4.0",
         AllOf(mentions("s.toml:22:1", "facotr"), proposes("factor")));
  change("factor = 4.0", "factor = \"4\"", mentions("s.toml:22:10", "factor", 4));
  change("factor = 4.0", "", mentions("s.toml:20:1", "factor"));
  change("workers = 3", "workers = 9", mentions("s.toml", "worker 9"));
  change("\"lognormal\"", "\"trace\"\ntrace = \"gone.csv\"", mentions("s.toml:17:9", "gone.csv"));
  change("\"ecdf\"", "\"edcf\"", AllOf(mentions("s.toml:12:10", "edcf"), proposes("ecdf")));
}

TEST(Simulate, UnsupportedFlagsAreRefused) {
  expect_error(kSmall, {"s.toml", "--slow", "worker=1,factor=2"}, mentions("[[slow]]"));
  expect_error(kSmall, {"s.toml", "--save-model", "m.pt"}, mentions("--save-model"));
  expect_error(kSmall, {"s.toml", "--transport", "tcp"}, mentions("[[link]]"));
  expect_error(kSmall, {"s.toml", "--hunt", "3"},
               AllOf(mentions("--hunt"), Not(HasSubstr("examples/"))));
  expect_error(kSmall, {"--hunt", "3", "--policy", "sync"}, mentions("--policy"));
  expect_error(kSmall, {"--hunt", "-1"}, mentions("--hunt", -1));
  expect_error(kSmall, {}, mentions("examples/scenarios/one-slow-node.toml", "--hunt"));
  expect_error(kSmall, {"gone.toml"}, mentions("gone.toml"));
}

}  // namespace
}  // namespace drover::testing_support
