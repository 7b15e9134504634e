#include "sim/scenario_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "job/settings.h"
#include "job/validation.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string trouble(const std::string& text) {
  const auto file = parse_scenario(text, "made-up.toml");
  return file ? "" : file.error().message;
}

constexpr const char* kWhole = R"(
about = "everything at once"
nodes = [4, 2]
layers = 20

[job]
workers = 6
shards = 2
steps = 30
policy = "static:0.5"

[[run_time]]
kind = "lognormal"
mean = 2.0
deviation = 0.5

[[run_time]]
workers = "4-5"
kind = "pareto"
shift = 1
shape = 2.5

[slow]
node = 1
steps = "5:10"
factor = 3

[[straggling]]
share = 0.1
delay_mean = 1.5

[[regime]]
by_node = true
enter = 0.2

[[drift]]
workers = 3
per_step = 0.01

[[link]]
latency = "2ms"
bandwidth = "8Mbit/s"
loss = 0.01

[[slow_shard]]
shard = 1
share = 0.0016
delay = "4s"

[[death]]
worker = 2
step = 7
loses_messages = true

[[join]]
worker = 2
at = "30s"

[[partition]]
node = 0
at = "1.5s"
length = "10s"

[[corrupt_gradient]]
worker = 0
step = 3

[[byzantine]]
worker = 1
factor = -10.0
step = 5
)";

TEST(ScenarioFile, ReadsAllKeys) {
  const auto read = parse_scenario(kWhole, "made-up.toml");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const ScenarioFile& file = read.value();
  const Scenario& scenario = file.scenario;
  EXPECT_EQ(file.about, "everything at once");
  EXPECT_EQ(file.job.cluster.workers, 6u);
  EXPECT_EQ(file.job.waiting.policy, "static:0.5");
  EXPECT_EQ(scenario.nodes, (std::vector<uint32_t>{4, 2}));
  EXPECT_EQ(scenario.layers, 20u);
  EXPECT_EQ(scenario.node_of(3), 0u);
  EXPECT_EQ(scenario.node_of(4), 1u);
  ASSERT_EQ(scenario.run_times.size(), 2u);
  EXPECT_EQ(scenario.run_times[0].law.kind, RunTimeKind::kLognormal);
  EXPECT_EQ(scenario.run_times[0].law.deviation, 0.5);
  EXPECT_EQ(scenario.run_times[1].selector.workers, (std::pair<WorkerId, WorkerId>(4, 5)));
  EXPECT_EQ(scenario.run_times[1].law.shift, 1.0);
  ASSERT_EQ(scenario.slow.size(), 1u);
  EXPECT_EQ(scenario.slow[0].steps.first, 5u);
  EXPECT_EQ(scenario.slow[0].steps.end, 10u);
  EXPECT_EQ(scenario.slow[0].factor, 3.0);
  EXPECT_EQ(scenario.straggling.at(0).delay_mean, 1.5);
  EXPECT_TRUE(scenario.regimes.at(0).by_node);
  EXPECT_EQ(scenario.drifts.at(0).per_step, 0.01);
  EXPECT_EQ(scenario.links.at(0).law.latency, std::chrono::milliseconds(2));
  EXPECT_EQ(scenario.links.at(0).law.bytes_per_second, 1e6);
  EXPECT_EQ(scenario.slow_shards.at(0).delay, std::chrono::seconds(4));
  EXPECT_EQ(scenario.deaths.at(0).when.step, 7u);
  EXPECT_TRUE(scenario.deaths.at(0).loses_messages);
  EXPECT_EQ(scenario.joins.at(0).when.at, std::chrono::seconds(30));
  EXPECT_EQ(scenario.partitions.at(0).length, std::chrono::seconds(10));
  EXPECT_EQ(scenario.corrupt_gradients.at(0).step, 3u);
  EXPECT_EQ(scenario.byzantine_faults.at(0).factor, -10.0);
  EXPECT_EQ(scenario.byzantine_faults.at(0).step, 5u);
  EXPECT_TRUE(validate(scenario, file.job).ok());
}

TEST(ScenarioFile, NodesMayBeANumber) {
  const auto read = parse_scenario("nodes = 4\n[job]\nworkers = 10\n", "x.toml");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().scenario.nodes, (std::vector<uint32_t>{3, 3, 2, 2}));
  ScenarioFile larger = read.value();
  larger.job.cluster.workers = 13;
  place_workers(larger);
  EXPECT_EQ(larger.scenario.nodes, (std::vector<uint32_t>{4, 3, 3, 3}));
}

TEST(ScenarioFile, ReadsFormerNamesOfTables) {
  const auto read = parse_scenario(
      "[job]\nworkers = 2\n[[poison]]\nworker = 1\nstep = 3\n[[lie]]\nworker = 0\nfactor = 2.0\n",
      "former.toml");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().scenario.corrupt_gradients.at(0).step, 3u);
  EXPECT_EQ(read.value().scenario.byzantine_faults.at(0).factor, 2.0);
}

TEST(ScenarioFile, ReadsATraceInItsFolder) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "scenario_with_trace";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "times.csv") << "step,w0,w1\n0,1,2\n1,3,4\n";
  const std::string path = (folder / "s.toml").string();
  std::ofstream(path)
      << "[job]\nworkers = 2\n[run_time]\nkind = \"trace\"\ntrace = \"times.csv\"\n";
  const auto read = read_scenario_file(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().scenario.run_times[0].law.trace->row(1)[0], 3.0);
}

TEST(ScenarioFile, ErrorsNameTheFileTheLineAndTheRemedy) {
  EXPECT_THAT(trouble("[job]\nworkers = 2\n[[slwo]]\nnode = 1\n"),
              AllOf(HasSubstr("made-up.toml:3"), HasSubstr("slwo"), HasSubstr("'slow'")));
  EXPECT_THAT(trouble("[[slow]]\nfactr = 2\n"),
              AllOf(HasSubstr("made-up.toml:2:1"), HasSubstr("'factr' in [[slow]]"),
                    HasSubstr("Did you mean 'factor'?")));
  EXPECT_THAT(trouble("[job]\nworkrs = 2\n"), AllOf(HasSubstr("2:1"), HasSubstr("'workers'")));
  EXPECT_THAT(trouble("[run_time]\nkind = \"lognormall\"\n"),
              AllOf(HasSubstr("2:8"), HasSubstr("'lognormal'")));
  EXPECT_THAT(trouble("[run_time]\nmean = 1\n"), HasSubstr("needs kind = \"lognormal\""));
  EXPECT_THAT(trouble("[run_time]\nkind = \"normal\"\nmean = -1\ndeviation = 1\n"),
              AllOf(HasSubstr("3:8"), HasSubstr("must be from")));
  EXPECT_THAT(trouble("[run_time]\nkind = \"pareto\"\n"),
              AllOf(HasSubstr("1:1"), HasSubstr("needs shift = 1.0 and shape = 2.5")));
  EXPECT_THAT(trouble("[run_time]\nkind = \"pareto\"\nshift = 0\nshape = 2\n"),
              AllOf(HasSubstr("3:9"), HasSubstr("must be from")));
  EXPECT_THAT(trouble("[run_time]\nkind = \"constant\"\nmean = 2\nshape = 2\n"),
              AllOf(HasSubstr("4:9"), HasSubstr("means nothing to the kind 'constant'")));
  EXPECT_THAT(trouble("[run_time]\nkind = \"trace\"\n"), HasSubstr("trace = \"times.csv\""));
  EXPECT_THAT(trouble("[run_time]\nkind = \"trace\"\ntrace = \"gone.csv\"\n"),
              AllOf(HasSubstr("3:9"), HasSubstr("gone.csv")));
  EXPECT_THAT(trouble("[[link]]\nlatency = 5\n"),
              AllOf(HasSubstr("2:11"), HasSubstr("text in quotes")));
  EXPECT_THAT(trouble("[[link]]\nlatency = \"5 parsecs\"\n"), HasSubstr("such as 200ms"));
  EXPECT_THAT(trouble("[[link]]\nbandwidth = \"fast\"\n"), HasSubstr("10Gbit/s"));
  EXPECT_THAT(trouble("[[death]]\nworker = 1\n"), HasSubstr("needs either step = 10"));
  EXPECT_THAT(trouble("[[death]]\nstep = 1\n"), HasSubstr("needs worker = 3"));
  EXPECT_THAT(trouble("[[byzantine]]\nworker = 1\n"), HasSubstr("needs factor = 100.0"));
  EXPECT_THAT(trouble("[[corrupt_gradient]]\nworker = 1\n"), HasSubstr("needs step = 10"));
  EXPECT_THAT(trouble("[[slow]]\nnode = 1\n"), HasSubstr("needs factor = 2.0"));
  EXPECT_THAT(trouble("[[straggling]]\nshare = 0.1\n"), HasSubstr("or delay_mean"));
  EXPECT_THAT(trouble("[[drift]]\nworkers = 1\n"), HasSubstr("needs per_step"));
  EXPECT_THAT(trouble("[[slow_shard]]\nshard = 0\n"), HasSubstr("needs delay = \"4s\""));
  EXPECT_THAT(trouble("[[partition]]\nat = \"1s\"\n"), HasSubstr("needs length = \"10s\""));
  EXPECT_THAT(trouble("[[slow]]\nnode = 1\nworkers = 2\nfactor = 2\n"),
              AllOf(HasSubstr("3:11"), HasSubstr("not both")));
  EXPECT_THAT(trouble("[[slow]]\nfactr = 2\n"), HasSubstr("Known: node, workers, steps, factor"))
      << "each complaint once";
  EXPECT_THAT(trouble("[[slow]]\nsteps = \"ten\"\n"), HasSubstr("2:9"));
  EXPECT_THAT(trouble("slow = 3\n"), HasSubstr("expected a table [[slow]]"));
  EXPECT_THAT(trouble("nodes = [1, 2]\n[job]\nworkers = 6\n"), HasSubstr("6 workers"));
  EXPECT_THAT(trouble("[job]\nslow = [\"worker=1,factor=2\"]\n"), HasSubstr("[[slow]]"));
  EXPECT_THAT(trouble("[job\n"), HasSubstr("made-up.toml:1"));
  EXPECT_THAT(read_scenario_file("/nowhere/s.toml").error().message,
              AllOf(HasSubstr("/nowhere/s.toml"), HasSubstr("No such file")));
}

TEST(ScenarioFile, RefusesNamesThatDoNotExist) {
  const auto complaint = [](const std::string& text) {
    const auto file = parse_scenario(text, "x.toml");
    EXPECT_TRUE(file.ok()) << file.error().message;
    const Status status = validate(file.value().scenario, file.value().job);
    return status ? std::string() : status.error().message;
  };
  EXPECT_THAT(complaint("[job]\nworkers = 2\n[[death]]\nworker = 2\nstep = 1\n"),
              HasSubstr("worker 2, but 2 workers are numbered 0 to 1"));
  EXPECT_THAT(complaint("nodes = 2\n[job]\nworkers = 2\n[[slow]]\nnode = 2\nfactor = 2\n"),
              HasSubstr("node 2, but 2 nodes"));
  EXPECT_THAT(complaint("[job]\nshards = 1\n[[slow_shard]]\nshard = 1\ndelay = \"1s\"\n"),
              HasSubstr("shard 1"));
  EXPECT_THAT(complaint("[job]\nworkers = 2\n[[corrupt_gradient]]\nworker = 1\nstep = 1\n"
                        "[[corrupt_gradient]]\nworker = 7\nstep = 1\n"),
              HasSubstr("[[corrupt_gradient]] number 2 names worker 7"));
  EXPECT_THAT(complaint("[job]\nworkers = 1\n[[join]]\nworker = 0\nstep = 1\n"),
              HasSubstr("worker 0 joins later"));
  EXPECT_THAT(complaint("[job]\nworkers = 3\n[[join]]\nworker = 1\nstep = 1\n"),
              HasSubstr("worker 1 joins later, but worker 2 does not"));
  EXPECT_EQ(complaint("[job]\nworkers = 3\n[[join]]\nworker = 1\nstep = 9\n"
                      "[[death]]\nworker = 1\nstep = 5\n"),
            "")
      << "it joins again after its death";
}

TEST(ScenarioFile, EveryShippedScenarioIsValid) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(DROVER_SOURCE_DIR "/examples/scenarios")) {
    const auto file = read_scenario_file(entry.path().string());
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_TRUE(validate(file.value().scenario, file.value().job).ok()) << entry.path();
    EXPECT_TRUE(validate(file.value().job).ok()) << entry.path();
    EXPECT_FALSE(file.value().about.empty()) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 9);
}

}  // namespace
}  // namespace drover
