// End-to-end tests of drover replay and drover policies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/test_text.h"
#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uint32_t kWorkers = 5;

// Run-times in milliseconds: worker w takes 10 + w, worker 4 three times as long in every fourth
// step.
double time_of(uint32_t step, uint32_t worker) {
  const double typical = 10.0 + worker + 0.125 * (step % 3);
  return worker == 4 && step % 4 == 0 ? 3.0 * typical : typical;
}

std::string csv(uint32_t steps) {
  std::ostringstream text;
  text << "step";
  for (uint32_t worker = 0; worker < kWorkers; ++worker) text << ",w" << worker;
  for (uint32_t step = 0; step < steps; ++step) {
    text << "\n" << step;
    for (uint32_t worker = 0; worker < kWorkers; ++worker) text << "," << time_of(step, worker);
  }
  text << "\n";
  return text.str();
}

void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

Outcome replay(const TemporaryFolder& folder, const Words& words) {
  return drover(Words{"replay"} + words, folder.path());
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// Removes values that depend on the speed of the machine and on the file's name.
nlohmann::json numbers_of(nlohmann::json line) {
  for (const char* key : {"decision_us_p50", "decision_us_p99", "trace"}) line.erase(key);
  return line;
}

TEST(Replay, PrintsATable) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(60));
  const Outcome outcome = replay(folder, {"--trace", "t.csv", "--policy", "sync"});
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(mentions("t.csv", 60, 5, "oracle", "100.0 %"), HasSubstr("\nsync")));
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(Replay, PrintsJsonForEachPolicyInTheGivenOrder) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(60));
  const Outcome outcome =
      replay(folder, {"--trace", "t.csv", "--policy", "sync,sync", "--policy", "sync", "--json"});
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  const auto lines = json_lines(outcome.out);
  ASSERT_EQ(lines.size(), 3u);
  const nlohmann::json& line = lines[0];
  EXPECT_EQ(line["policy"], "sync");
  EXPECT_EQ(line["steps"], 60);
  EXPECT_EQ(line["measured_steps"], 40);
  EXPECT_EQ(line["workers"], 5);
  EXPECT_EQ(line["cutoff_mean"], 5.0);
  EXPECT_EQ(line["time_vs_sync"], 1.0);
  EXPECT_EQ(line["inclusion_min"], 1.0);
  EXPECT_EQ(numbers_of(line), numbers_of(lines[2]));
  // Compared with a direct calculation.
  double time = 0.0;
  double best_gradients = 0.0;
  double best_time = 0.0;
  for (uint32_t step = 20; step < 60; ++step) {
    time += time_of(step, 4);
    const bool slow = step % 4 == 0;  // 4 / 13 is then better than 5 / 42
    best_gradients += slow ? 4 : 5;
    best_time += time_of(step, slow ? 3 : 4);
  }
  EXPECT_DOUBLE_EQ(line["throughput_total"].get<double>(), 5.0 * 40 / time);
  EXPECT_DOUBLE_EQ(line["oracle_share_total"].get<double>(),
                   5.0 * 40 / time / (best_gradients / best_time));
}

TEST(Replay, AllMeansEachPolicyWithoutRequiredOptions) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(60));
  for (const std::string objective : {"throughput", "rate", "goodput"}) {
    const Outcome outcome =
        replay(folder, {"--trace", "t.csv", "--policy", "all,static:k=2", "--objective", objective,
                        "--noise", "0.5", "--json", "--quiet"});
    EXPECT_EQ(outcome.status(), 0) << outcome.err;
    EXPECT_THAT(outcome.err, IsEmpty());
    std::map<std::string, nlohmann::json> lines;
    for (const nlohmann::json& line : json_lines(outcome.out)) lines[line["policy"]] = line;
    for (const char* name : {"sync", "static", "ecdf", "oracle", "static:k=2"}) {
      EXPECT_TRUE(lines.contains(name)) << name;
    }
    for (const char* name : {"deadline", "async", "ssp"}) EXPECT_FALSE(lines.contains(name));
    EXPECT_EQ(lines["static:k=2"]["cutoff_mean"], 2.0);
    EXPECT_EQ(lines["static:k=2"]["objective"], objective);
    if (objective == "goodput") {
      EXPECT_EQ(lines["ecdf"]["cutoff_mean"], 2.0) << "1.2 / 11 is more than 1 / 10 and 1.29 / 12";
    }
    if (objective == "throughput") {
      EXPECT_DOUBLE_EQ(lines["oracle"]["oracle_share_total"].get<double>(), 1.0);
      EXPECT_DOUBLE_EQ(lines["oracle"]["oracle_share_median"].get<double>(), 1.0);
    }
  }
  const Outcome refused = replay(folder, {"--trace", "t.csv", "--policy", "sync,async"});
  EXPECT_EQ(refused.status(), 2);
  EXPECT_THAT(refused.err, mentions("--policy", "async", "drover simulate"));
}

TEST(Replay, ReadsTheSameTimesFromCsvNpyAndRunFile) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(50));
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (50, 5), }";
  header.resize(117, ' ');
  header += '\n';
  std::string npy("\x93NUMPY\x01\0", 8);
  npy += static_cast<char>(header.size());
  npy += '\0';
  npy += header;
  for (uint32_t step = 0; step < 50; ++step) {
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
      const double time = time_of(step, worker);
      npy.append(reinterpret_cast<const char*>(&time), sizeof(time));
    }
  }
  write(folder.file("matrix"), npy);
  const Words words = {"--policy", "sync", "--json"};
  const Outcome from_csv =
      replay(folder, words + Words{"--trace", "t.csv", "--save", "saved/run.db"});
  EXPECT_EQ(from_csv.status(), 0) << from_csv.err;
  const Outcome from_npy = replay(folder, words + Words{"--trace", "matrix"});
  EXPECT_EQ(from_npy.status(), 0) << from_npy.err;
  const Outcome from_run = replay(folder, words + Words{"--trace", "saved/run.db"});
  EXPECT_EQ(from_run.status(), 0) << from_run.err;
  const auto expected = numbers_of(last_line_json(from_csv.out));
  EXPECT_EQ(numbers_of(last_line_json(from_npy.out)), expected);
  // A run file counts whole nanoseconds.
  EXPECT_NEAR(last_line_json(from_run.out)["throughput_total"].get<double>(),
              expected["throughput_total"].get<double>(), 1e-9);
}

TEST(Replay, SavesRunsThatDroverRunsReadsAndNeverOverwritesThem) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(30));
  const Words words = {"--trace", "t.csv", "--policy", "sync,sync", "--save", "out.db"};
  const Outcome first = replay(folder, words);
  EXPECT_EQ(first.status(), 0) << first.err;
  EXPECT_THAT(names_in(folder.path()), ElementsAre("out-sync-2.db", "out-sync.db", "t.csv"));
  const Outcome runs = drover({"runs", "out-sync.db", "--json"}, folder.path());
  EXPECT_EQ(runs.status(), 0) << runs.err;
  const auto summary = last_line_json(runs.out);
  EXPECT_EQ(summary["steps"], 30);
  EXPECT_EQ(summary["workers"], 5);
  EXPECT_EQ(summary["gradients_used"], 150);
  EXPECT_EQ(summary["outcome"], "completed");
  EXPECT_TRUE(summary["loss"].is_null());
  const std::string before = content_of(folder.file("out-sync.db"));
  const Outcome again = replay(folder, words);
  EXPECT_EQ(again.status(), 1);
  EXPECT_THAT(again.err, mentions("out-sync.db", "--save"));
  EXPECT_THAT(again.out, IsEmpty()) << "refused before the replay starts";
  EXPECT_EQ(content_of(folder.file("out-sync.db")), before);
}

TEST(Replay, WritesItsDecisions) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(12));
  const Outcome outcome =
      replay(folder, {"--trace", "t.csv", "--policy", "sync", "--policy-warmup", "0", "--steps",
                      "4:6", "--decisions", "d.csv", "--max-wait", "20"});
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  std::istringstream text(content_of(folder.file("d.csv")));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "step,policy,cutoff,elapsed,oracle_cutoff,reason");
  EXPECT_THAT(lines[1], StartsWith("4,sync,4,20,4,")) << "worker 4 takes 42, the limit is 20";
  EXPECT_THAT(lines[2], StartsWith("5,sync,5,14.25,5,"));
}

TEST(Replay, ReplaysOnlyTheGivenSteps) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(60));
  const auto steps_of = [&](const std::string& range) {
    const Outcome outcome =
        replay(folder, {"--trace", "t.csv", "--policy", "sync", "--json", "--steps", range});
    EXPECT_EQ(outcome.status(), 0) << outcome.err;
    return last_line_json(outcome.out)["steps"];
  };
  EXPECT_EQ(steps_of("10:50"), 40);
  EXPECT_EQ(steps_of("10:"), 50);
  EXPECT_EQ(steps_of(":30"), 30);
}

TEST(Replay, KeepsToTheLimitsOfARun) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(60));
  const auto least_included = [&](const Words& words) {
    const Outcome outcome = replay(folder, Words{"--trace", "t.csv", "--policy", "static:k=2",
                                                 "--json", "--policy-warmup", "10"} +
                                               words);
    EXPECT_EQ(outcome.status(), 0) << outcome.err;
    EXPECT_EQ(last_line_json(outcome.out)["measured_steps"], 50);
    return last_line_json(outcome.out)["inclusion_min"].get<double>();
  };
  EXPECT_EQ(least_included({}), 0.0);
  EXPECT_EQ(least_included({"--min-contributors", "5"}), 1.0);
  EXPECT_GE(least_included({"--min-inclusion", "0.25"}), 0.25);
}

TEST(Replay, InterruptedPrintsTheFinishedPolicies) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(200'000));
  Result<Process> process =
      Process::start({.words = {DROVER_BINARY, "replay", "--trace", "t.csv", "--policy",
                                "sync,ewma", "--save", "run.db", "--json", "--quiet"},
                      .environment = {},
                      .directory = folder.path()});
  ASSERT_TRUE(process.ok()) << process.error().message;
  // The first policy is finished; the second one takes many times as long.
  const auto line = process.value().wait_for_line("\"policy\":\"sync\"", kRunPatience);
  ASSERT_TRUE(line.ok()) << line.error().message;
  process.value().signal(SIGINT);
  const auto ending = process.value().wait(kRunPatience);
  ASSERT_TRUE(ending.ok()) << ending.error().message;
  EXPECT_EQ(ending.value().exit_code, 130);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("run-ewma.db", "run-sync.db", "t.csv"));
  const auto summary = last_line_json(drover({"runs", "run-ewma.db", "--json"}, folder.path()).out);
  EXPECT_EQ(summary["outcome"], "interrupted");
}

TEST(Replay, ProbesLetAShareOfStragglersFinish) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(60));
  const auto late_and_unknown = [&](const std::string& share) {
    const std::string file = "probe-" + share + ".db";
    const Outcome outcome = replay(folder, {"--trace", "t.csv", "--policy", "static:0.5", "--probe",
                                            share, "--save", file, "--quiet"});
    EXPECT_EQ(outcome.status(), 0) << outcome.err;
    const auto reader = RunReader::open(folder.file(file));
    uint64_t late = 0;
    uint64_t censored = 0;
    const auto arrivals = reader.value().arrivals();
    for (const RecordedArrival& each : arrivals.value()) {
      late += each.late ? 1 : 0;
      censored += each.arrival.censored ? 1 : 0;
    }
    return std::pair(late, censored);
  };
  const auto [none_late, none_known] = late_and_unknown("0");
  EXPECT_EQ(none_late, 0U);
  const auto [late, unknown] = late_and_unknown("0.5");
  EXPECT_GT(late, none_known / 4);
  EXPECT_EQ(late + unknown, none_known) << "static does not depend on what it learns";
  EXPECT_LT(late_and_unknown("1").second, none_known / 10)
      << "only probes that have not finished at the end";
}

void expect_error(const Words& words, int status, const ::testing::Matcher<std::string>& error) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(30));
  write(folder.file("empty.csv"), "");
  write(folder.file("ragged.csv"), "step,w0,w1\n0,1,2\n1,3\n");
  write(folder.file("one.csv"), "step,w0\n0,1\n");
  write(folder.file("noise"), std::string("\0\1\2\3", 4));
  const auto before = names_in(folder.path());
  const Outcome outcome = replay(folder, words);
  EXPECT_EQ(outcome.status(), status) << outcome.err;
  EXPECT_THAT(outcome.err, error);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_EQ(names_in(folder.path()), before) << "no file was written";
}

TEST(Replay, ErrorsOfFlagsNameTheRightOnes) {
  const Words sync = {"--policy", "sync"};
  const Words both = sync + Words{"--trace", "t.csv"};
  expect_error(sync, 2, mentions("--trace"));
  expect_error({"--trace", "t.csv"}, 2, mentions("--policy"));
  expect_error(both + Words{"--policy-warmpu", "3"}, 2,
               AllOf(mentions("--policy-warmpu"), proposes("--policy-warmup")));
  expect_error({"--trace", "t.csv", "--policy", "snyc"}, 2,
               AllOf(mentions("snyc"), proposes("sync")));
  expect_error({"--trace", "t.csv", "--policy", "sync,,sync"}, 2, mentions("--policy"));
  expect_error({"--trace", "t.csv", "--policy", ""}, 2, mentions("--policy"));
  expect_error(both + Words{"--objective", "rat"}, 2,
               AllOf(mentions("--objective", "rat"), proposes("rate")));
  expect_error(both + Words{"--steps", "7"}, 2, mentions("--steps", "100:200"));
  expect_error(both + Words{"--objective", "goodput"}, 2,
               mentions("--objective", "goodput", "--noise"));
  expect_error(both + Words{"--noise", "0"}, 2, mentions("--noise", 0));
  expect_error(both + Words{"--noise", "inf"}, 2, mentions("--noise", 0));
  expect_error(both + Words{"--overhead", "-1"}, 2, mentions("--overhead"));
  expect_error(both + Words{"--overhead", "nan"}, 2, mentions("--overhead"));
  expect_error(both + Words{"--overhead", "1e308"}, 2, mentions("--overhead"));
  expect_error(both + Words{"--max-wait", "10s"}, 2, mentions("--max-wait", "10s"));
  expect_error(both + Words{"--probe", "1.5"}, 2, mentions("--probe", 0, 1, "1.5"));
  expect_error(both + Words{"--min-inclusion", "2"}, 2, mentions("--min-inclusion", 2));
  expect_error(both + Words{"--max-wait", "0"}, 2, mentions("--max-wait", 0));
  expect_error(both + Words{"--min-contributors", "0"}, 2, mentions("--min-contributors", 0));
  expect_error(both + Words{"--policy-warmup", "some"}, 2, mentions("--policy-warmup", "some"));
  for (const std::string flag : {"--policy-warmup", "--seed", "--min-contributors"})
    expect_error(both + Words{flag, "-1"}, 2, mentions(flag, -1));
}

TEST(Replay, ErrorsOfTracesNameTheRemedy) {
  const auto with = [](const std::string& trace) {
    return Words{"--policy", "sync", "--trace", trace};
  };
  expect_error(with("nowhere.csv"), 1, mentions("nowhere.csv"));
  expect_error(with("."), 1, mentions("'.'"));
  expect_error(with("empty.csv"), 1, mentions("empty.csv", "CSV", "NPY"));
  expect_error(with("ragged.csv"), 1, mentions("ragged.csv", 3, 2));
  expect_error(with("one.csv"), 1, AllOf(mentions("one.csv"), Not(mentions("NPY"))));
  expect_error(with("noise"), 1, mentions("noise", "CSV", "NPY"));
  expect_error(with("t.csv") + Words{"--steps", "10:31"}, 1, mentions("--steps", 30));
  expect_error(with("t.csv") + Words{"--policy-warmup", "30"}, 1,
               mentions(30, "--policy-warmup 7"));
  expect_error(with("t.csv") + Words{"--steps", ":10"}, 1, mentions(10, 20, "--policy-warmup 2"));
  expect_error(with("t.csv") + Words{"--decisions", "t.csv"}, 1, mentions("--decisions", "t.csv"));
  expect_error(with("t.csv") + Words{"--save", "."}, 1, mentions("'.'", "--save"));
  expect_error(with("t.csv") + Words{"--decisions", "no/d.csv"}, 1, mentions("no/d.csv"));
}

TEST(Replay, WarnsOfCensoredTimes) {
  const TemporaryFolder folder;
  write(folder.file("t.csv"), csv(40));
  const Words words = {"--policy", "sync", "--quiet", "--trace"};
  const Outcome saved =
      replay(folder, words + Words{"t.csv", "--max-wait", "20", "--save", "run.db"});
  EXPECT_EQ(saved.status(), 0) << saved.err;
  EXPECT_THAT(saved.err, IsEmpty());
  const Outcome again = replay(folder, words + Words{"run.db", "--json"});
  EXPECT_EQ(again.status(), 0) << again.err;
  EXPECT_THAT(again.err, mentions("run.db", 10, 200));
  EXPECT_EQ(last_line_json(again.out)["steps"], 40);
}

TEST(Policies, AreListed) {
  const TemporaryFolder folder;
  const Outcome text = drover({"policies"}, folder.path());
  EXPECT_EQ(text.status(), 0);
  EXPECT_THAT(text.out, StartsWith("sync "));
  const Outcome json = drover({"policies", "--json"}, folder.path());
  const auto lines = json_lines(json.out);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0]["name"], "sync");
  EXPECT_TRUE(lines[0]["summary"].is_string());
  EXPECT_TRUE(lines[0]["options"].is_string());
}

}  // namespace
}  // namespace drover::testing_support
