// End-to-end tests of drover experiment: interrupted and resumed, killed, and with real processes
// beside another program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/test_text.h"
#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kScenario = R"([job]
model = "logistic"
data = "generated"
generated_samples = 256
workers = 4
shards = 1
batch = 4

[run_time]
kind = "lognormal"
mean = 1.0
deviation = 0.2
)";

// The first variant reaches the target at once, the second never does.
std::string grid(const std::string& steps_of_second, const std::string& lr_of_first = "0.1") {
  return R"(about = "one that learns and one that does not"
target = "loss=2.2"
seeds = [1, 2]

[common]
evaluate_every = 5
steps = 200

[[place]]
name = "small"
scenario = "small.toml"

[[variant]]
name = "learns"
set = { policy = "sync", lr = )" +
         lr_of_first + R"( }

[[variant]]
name = "sleeps"
set = { policy = "static:k=3", lr = 1e-9, steps = )" +
         steps_of_second + R"( }
)";
}

class ExperimentE2eTest : public ::testing::Test {
 protected:
  void SetUp() override { write("small.toml", kScenario); }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_.file(name), std::ios::binary) << content;
  }
  Outcome experiment(const Words& words) {
    return drover(Words{"experiment", "grid.toml"} + words, folder_.path());
  }
  Process start(const Words& words) {
    Command command;
    command.words = Words{DROVER_BINARY, "experiment", "grid.toml"} + words;
    command.directory = folder_.path();
    auto process = Process::start(command);
    EXPECT_TRUE(process.ok());
    return std::move(process).value();
  }
  std::vector<std::string> cells() const {
    return names_in(folder_.file("experiments/grid/cells"));
  }
  std::string cell(const std::string& name) const {
    return folder_.file("experiments/grid/cells/" + name);
  }

  // Checked whenever output is printed, which happens when a cell is done.
  bool first_is_done() const { return std::filesystem::exists(cell("small-learns-1.db")); }

  TemporaryFolder folder_;
};

TEST_F(ExperimentE2eTest, ResumesWithoutLosingOrRepeatingACell) {
  // The second variant would take a billion steps, so it is always interrupted.
  write("grid.toml", grid("1000000000"));
  {
    Process process = start({"--jobs", "1"});
    const auto first =
        process.wait_for_line([&](std::string_view) { return first_is_done(); }, kRunPatience);
    ASSERT_TRUE(first.ok()) << first.error().message;
    const std::vector<pid_t> children = children_of(process.pid());
    process.signal(SIGINT);
    const auto ending = process.wait(kRunPatience);
    ASSERT_TRUE(ending.ok()) << ending.error().message;
    EXPECT_EQ(ending.value(), (Ending{.exit_code = 130}));
    EXPECT_THAT(process.output(Output::kStderr),
                mentions(1, 4, "drover experiment grid.toml", "--resume"));
    for (const pid_t child : children) EXPECT_TRUE(process_gone(child));
  }
  for (const std::string& name : cells())
    EXPECT_THAT(name, Not(HasSubstr("part"))) << "an unfinished cell";
  ASSERT_TRUE(std::filesystem::exists(cell("small-learns-1.db")));
  const std::string before = content_of(cell("small-learns-1.db"));

  const Outcome refused = experiment({});
  EXPECT_EQ(refused.status(), 2);
  EXPECT_THAT(refused.err, mentions("--resume"));

  // Cells that have not run yet may still be changed.
  write("grid.toml", grid("10"));
  const Outcome resumed = experiment({"--resume", "--quiet"});
  EXPECT_EQ(resumed.status(), 0) << resumed.err;
  EXPECT_EQ(resumed.err, "");
  EXPECT_EQ(content_of(cell("small-learns-1.db")), before) << "the cell was not run again";
  EXPECT_THAT(resumed.out, mentions("small", "loss=2.2", "2/2", "0/2", "sleeps", 10));
  for (const char* name : {"results.csv", "summary.csv", "summary.md", "experiment.toml"})
    EXPECT_NE(content_of(folder_.file("experiments/grid/" + std::string(name))), "") << name;

  // Cells that have run must not be changed.
  write("grid.toml", grid("10", "0.2"));
  const Outcome changed = experiment({"--resume"});
  EXPECT_EQ(changed.status(), 2);
  EXPECT_THAT(changed.err, mentions("small-learns-1", "--lr 0.1", "--lr 0.2"));

  // With nothing to do it only prints the results. A cell that runs alone gives the same result as
  // with others.
  write("grid.toml", grid("10"));
  const auto again = last_line_json(experiment({"--resume", "--json"}).out);
  const auto elsewhere =
      last_line_json(experiment({"--out", "other", "--json", "--jobs", "4"}).out);
  ASSERT_FALSE(again.is_null());
  EXPECT_EQ(again["places"], elsewhere["places"]) << "equal seeds, equal results";
  EXPECT_EQ(again["places"][0]["variants"][0]["reached"], 2);
  EXPECT_GT(again["places"][0]["variants"][0]["idle_share"], 0.0);
}

TEST_F(ExperimentE2eTest, CellsEndWhenItIsKilled) {
  write("grid.toml", grid("1000000000"));
  Process process = start({"--jobs", "2"});
  const auto first =
      process.wait_for_line([&](std::string_view) { return first_is_done(); }, kRunPatience);
  ASSERT_TRUE(first.ok()) << first.error().message;
  const std::vector<pid_t> children = children_of(process.pid());
  process.signal(SIGKILL);
  ASSERT_TRUE(process.wait(kRunPatience).ok());
  for (const pid_t child : children) EXPECT_TRUE(wait_until_gone(child, kRunPatience));
  write("grid.toml", grid("10"));
  EXPECT_EQ(experiment({"--resume", "--quiet"}).status(), 0);
}

TEST_F(ExperimentE2eTest, ACellThatFailsDoesNotStopTheOthers) {
  // The only worker sends gradients with NaN in each step: the run cannot continue.
  std::string scenario = kScenario;
  scenario.replace(scenario.find("workers = 4"), 11, "workers = 1");
  for (int step = 0; step < 4; ++step)
    scenario += "[[corrupt_gradient]]\nworker = 0\nstep = " + std::to_string(step) + "\n";
  write("bad.toml", scenario);
  std::string text = grid("10");
  text.insert(text.find("[[variant]]"), "[[place]]\nname = \"bad\"\nscenario = \"bad.toml\"\n\n");
  text.replace(text.find("static:k=3"), 10, "static:k=1");
  write("grid.toml", text);
  const Outcome outcome = experiment({});
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_THAT(outcome.out, mentions("bad", "learns", "0/2", "2/2"));
  const auto reader = RunReader::open(cell("bad-learns-1.db"));
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader.value().end().value().cause, EndCause::kDiverged);
  EXPECT_THAT(content_of(folder_.file("experiments/grid/results.csv")),
              HasSubstr("\nbad,learns,1,failed,"));
}

TEST_F(ExperimentE2eTest, RealCellsRunBesideAProgramThatEndsWithThem) {
  write("job.toml",
        "model = \"logistic\"\ndata = \"generated\"\ngenerated_samples = 256\nworkers = 2\n"
        "shards = 1\nbatch = 4\n");
  write("grid.toml", R"(target = "loss=5"
seeds = [1]

[common]
steps = 20
evaluate_every = 5

[[place]]
name = "here"
job = "job.toml"
beside = ["sh", "-c", "sleep 1000 & echo $$ $! > beside.txt; wait"]

[[variant]]
name = "sync"
)");
  const Outcome outcome = experiment({"--json"});
  ASSERT_EQ(outcome.status(), 0) << outcome.err;
  const auto json = last_line_json(outcome.out);
  EXPECT_EQ(json["places"][0]["real"], true);
  EXPECT_EQ(json["places"][0]["variants"][0]["reached"], 1) << outcome.out;
  std::ifstream pids(folder_.file("beside.txt"));
  pid_t shell = 0;
  pid_t sleeper = 0;
  ASSERT_TRUE(pids >> shell >> sleeper);
  EXPECT_TRUE(wait_until_gone(shell));
  EXPECT_TRUE(wait_until_gone(sleeper));
}

TEST_F(ExperimentE2eTest, ReportsErrorsBeforeAnythingStarts) {
  std::string text = grid("10");
  text.replace(text.find("static:k=3"), 10, "statik:k=3");
  write("grid.toml", text);
  const Outcome outcome = experiment({});
  EXPECT_EQ(outcome.status(), 2);
  EXPECT_THAT(outcome.err,
              AllOf(mentions("grid.toml:19", "'sleeps'", "policy", "statik"), proposes("static")));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("experiments")));
}

}  // namespace
}  // namespace drover::testing_support
