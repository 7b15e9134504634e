// End-to-end tests of system_bench. Measured values depend on the machine; the output format does
// not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/test_text.h"
#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Outcome bench(const Words& words) {
  const TemporaryFolder folder;
  return run_program(SYSTEM_BENCH, Words{"decide"} + words, folder.path());
}

TEST(BenchDecide, PrintsJsonForEachNumberOfWorkers) {
  for (const char* emission : {"shared", "workers", "sorted"}) {
    const Outcome outcome = bench({"--workers", "3,70", "--samples", "20", "--repeat", "5",
                                   "--emission", emission, "--json"});
    ASSERT_EQ(outcome.status(), 0) << outcome.err;
    EXPECT_THAT(outcome.err, IsEmpty());
    std::vector<nlohmann::json> lines;
    std::istringstream stream(outcome.out);
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0].at("workers"), 3);
    EXPECT_EQ(lines[1].at("workers"), 70);
    for (const nlohmann::json& line : lines) {
      EXPECT_EQ(line.at("samples"), 20);
      EXPECT_EQ(line.at("emission"), emission);
      EXPECT_GT(line.at("p50_us"), 0.0);
      EXPECT_GE(line.at("p99_us"), line.at("p50_us"));
      for (const char* part : {"learn_us", "forecast_us", "sort_us", "search_us"}) {
        EXPECT_GE(line.at(part), 0.0) << part;
      }
    }
  }
}

TEST(BenchDecide, PrintsATable) {
  const Outcome outcome = bench({"--workers", "16", "--repeat", "3"});
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(mentions("'shared'", "99 %"), HasSubstr("\n      16      128 ")));
}

TEST(BenchDecide, ReportsWrongFlags) {
  const auto error_of = [](const Words& words) {
    const Outcome outcome = bench(words);
    EXPECT_EQ(outcome.status(), 2);
    EXPECT_THAT(outcome.out, IsEmpty());
    return outcome.err;
  };
  EXPECT_THAT(error_of({"--workers", "16,,4"}), mentions("--workers", "''", 1));
  EXPECT_THAT(error_of({"--workers", "16,many"}), mentions("--workers", "'many'", 1));
  EXPECT_THAT(error_of({"--workers", "0"}), mentions("--workers", "'0'", 1));
  EXPECT_THAT(error_of({"--workers", "99999999999"}), mentions("--workers", "'99999999999'", 1));
  EXPECT_THAT(error_of({"--emission", "shard"}),
              AllOf(mentions("--emission", "shard"), proposes("shared")));
  EXPECT_THAT(error_of({"--samples", "1000000"}), mentions("--samples", 1000000));
  EXPECT_THAT(error_of({"--workers", "3,90000", "--samples", "10000"}),
              mentions("--samples", 10000, 90000));
  EXPECT_THAT(error_of({"--repeat", "0"}), mentions("--repeat", 1, 0));
  EXPECT_THAT(error_of({"--repaet", "3"}), AllOf(mentions("--repaet"), proposes("--repeat")));
}

// One JSON object whose figures are complete.
nlohmann::json figures(const Words& words) {
  const TemporaryFolder folder;
  const Outcome outcome = run_program(SYSTEM_BENCH, words + Words{"--json"}, folder.path());
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  const nlohmann::json all = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(all.at("bench"), words.front());
  return all;
}

void expect_beside(const nlohmann::json& figure, const std::string& name,
                   const std::string& unit = "gb_per_s") {
  EXPECT_GT(figure.at(unit), 0.0);
  EXPECT_LE(figure.at(unit + "_min"), figure.at(unit + "_max"));
  EXPECT_GT(figure.at(name + "_" + unit), 0.0);
  EXPECT_GT(figure.at("ratio_to_" + name), 0.0);
  EXPECT_LE(figure.at("ratio_to_" + name + "_min"), figure.at("ratio_to_" + name));
  EXPECT_GE(figure.at("ratio_to_" + name + "_max"), figure.at("ratio_to_" + name));
}

TEST(BenchOptimizer, ComparesEachKindWithItsFloor) {
  const std::vector<std::pair<std::string, double>> streams = {{"sgd", 3.0},      {"momentum", 5.0},
                                                               {"nesterov", 5.0}, {"rmsprop", 5.0},
                                                               {"adam", 7.0},     {"adamw", 7.0}};
  for (const auto& [kind, count] : streams) {
    const auto all = figures({"optimizer", "--kind", kind, "--mb", "1", "--rounds", "2"});
    EXPECT_EQ(all.at("settings").at("streams"), count) << kind;
    expect_beside(all.at("figures").at(0), "floor");
  }
}

TEST(BenchTransport, ComparesAChannelWithPlainAsio) {
  for (const char* transport : {"shm", "uds", "tcp"}) {
    const auto all =
        figures({"transport", "--transport", transport, "--volume-mb", "1", "--rounds", "2"});
    const auto& lines = all.at("figures");
    ASSERT_EQ(lines.size(), 4U);
    expect_beside(lines[0], "asio", "p50_us");
    EXPECT_GE(lines[0].at("p90_us"), 0.0);
    for (size_t i = 1; i < lines.size(); ++i) {
      expect_beside(lines[i], "asio");
      expect_beside(lines[i], "floor");
    }
  }
}

// The benchmark checks the sums, and fails if one is wrong.
TEST(BenchServer, ComparesAShardWithThePlainSum) {
  for (const char* transport : {"shm", "uds", "tcp"}) {
    const auto all = figures(
        {"server", "--transport", transport, "--workers", "3", "--mb", "1", "--rounds", "2"});
    const auto& lines = all.at("figures");
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0].at("what"), "push");
    expect_beside(lines[0], "floor");
    expect_beside(lines[0], "asio");
    EXPECT_EQ(lines[1].at("what"), "publish");
    expect_beside(lines[1], "floor");
  }
}

// Blocks that are sent with their offers, and a last block that is shorter than the others.
TEST(BenchServer, TakesGradientsOfAnySize) {
  for (const char* kb : {"1", "300"}) {
    const auto all = figures({"server", "--workers", "2", "--kb", kb, "--rounds", "1"});
    expect_beside(all.at("figures").at(0), "floor");
  }
}

TEST(BenchDataPath, PrintsATable) {
  const TemporaryFolder folder;
  const Outcome outcome = run_program(
      SYSTEM_BENCH, {"server", "--workers", "2", "--mb", "1", "--rounds", "1"}, folder.path());
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(mentions(2, "uds", "floor"), HasSubstr("\npush "), HasSubstr("\npublish ")));
}

TEST(BenchDataPath, ReportsWrongFlags) {
  const auto error_of = [](const Words& words, int status = 2) {
    const TemporaryFolder folder;
    const Outcome outcome = run_program(SYSTEM_BENCH, words, folder.path());
    EXPECT_EQ(outcome.status(), status);
    EXPECT_THAT(outcome.out, IsEmpty());
    return outcome.err;
  };
  EXPECT_THAT(error_of({"optimizer", "--kind", "adan"}),
              AllOf(mentions("--kind", "adan"), proposes("adam")));
  EXPECT_THAT(error_of({"optimizer", "--mb", "0"}), mentions("--mb", 1, 0));
  EXPECT_THAT(error_of({"transport", "--transport", "udp"}),
              AllOf(mentions("--transport", "udp"), proposes("uds")));
  EXPECT_THAT(error_of({"transport", "--rounds", "0"}), mentions("--rounds", 1, 0));
  EXPECT_THAT(error_of({"server", "--workers", "0"}), mentions("--workers", 1, 0));
  EXPECT_THAT(error_of({"server", "--workers", "1000", "--mb", "1000"}), mentions("--mb", 1000));
  EXPECT_THAT(error_of({"server", "--window", "0"}), mentions("--window", 1, 0));
  EXPECT_THAT(error_of({"server", "--transport", "tcp", "--listen", "nowhere:1"}, 1),
              mentions("nowhere:1", "tcp:HOST:PORT"));
  EXPECT_THAT(error_of({"transport", "--transport", "tcp", "--netns", "no-such"}, 1),
              mentions("no-such"));
}

}  // namespace
}  // namespace drover::testing_support
