// drover bench as people use it. How fast it is depends on the machine; what it prints does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Outcome bench(const Words& words) {
  const TemporaryFolder folder;
  return drover(Words{"bench", "decide"} + words, folder.path());
}

TEST(BenchDecide, GivesJsonForEveryNumberOfWorkers) {
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

TEST(BenchDecide, ShowsATable) {
  const Outcome outcome = bench({"--workers", "16", "--repeat", "3"});
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(StartsWith("A decision with the learned model 'shared'"),
                                 HasSubstr("99 %"), HasSubstr("\n      16      128 ")));
}

TEST(BenchDecide, SaysWhatIsWrong) {
  const auto told = [](const Words& words) {
    const Outcome outcome = bench(words);
    EXPECT_EQ(outcome.status(), 2);
    EXPECT_THAT(outcome.out, IsEmpty());
    return outcome.err;
  };
  EXPECT_THAT(told({"--workers", "16,,4"}), HasSubstr("'' is not a number of workers from 1 to"));
  EXPECT_THAT(told({"--workers", "16,many"}), HasSubstr("'many' is not a number of workers"));
  EXPECT_THAT(told({"--workers", "0"}), HasSubstr("'0' is not a number of workers"));
  EXPECT_THAT(told({"--workers", "99999999999"}), HasSubstr("is not a number of workers"));
  EXPECT_THAT(told({"--emission", "shard"}),
              AllOf(HasSubstr("--emission"), HasSubstr("Did you mean 'shared'?")));
  EXPECT_THAT(told({"--samples", "1000000"}), HasSubstr("--samples: 1000000 are too many"));
  EXPECT_THAT(told({"--workers", "3,90000", "--samples", "10000"}),
              HasSubstr("10000 samples of 90000 workers would take gigabytes"));
  EXPECT_THAT(told({"--repeat", "0"}), HasSubstr("--repeat: must be from 1"));
  EXPECT_THAT(told({"--repaet", "3"}), HasSubstr("'--repeat'"));
}

}  // namespace
}  // namespace drover::testing_support
