#include "cli/replay_report.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace drover {
namespace {

using namespace std::chrono_literals;

const ReplayFrame kFrame{"job.csv", "rate", 20};

ReplayRow row(const std::string& policy) {
  return {policy,
          {.steps = 1'500,
           .workers = 10,
           .measured_steps = 1'480,
           .throughput_total = 12.5,
           .throughput_median = 13.0,
           .oracle_share_total = 0.987,
           .oracle_share_median = 0.9911,
           .time_vs_sync = 0.5,
           .cutoff_mean = 8.25,
           .inclusion_min = 0.031,
           .decision_p50 = 12'340ns,
           .decision_p99 = 2'500'000ns}};
}

TEST(ReplayReport, TextIsATable) {
  EXPECT_EQ(
      to_text(kFrame, {row("sync"), row("static:0.943")}),
      "job.csv: 1,500 steps x 10 workers, objective rate; first 20 steps not measured\n"
      "\n"
      "              of oracle  of oracle     time  gradients     least  decision  decision\n"
      "policy            total     median  vs sync   per step  included    median       p99\n"
      "sync             98.7 %     99.1 %   50.0 %        8.2     3.1 %   12.3 µs    2.5 ms\n"
      "static:0.943     98.7 %     99.1 %   50.0 %        8.2     3.1 %   12.3 µs    2.5 ms\n");
}

TEST(ReplayReport, JsonIsOneLine) {
  const auto json = nlohmann::json::parse(to_json_line(kFrame, row("static:k=3")));
  EXPECT_EQ(json["policy"], "static:k=3");
  EXPECT_EQ(json["steps"], 1'500);
  EXPECT_EQ(json["workers"], 10);
  EXPECT_EQ(json["throughput_total"], 12.5);
  EXPECT_EQ(json["throughput_median"], 13.0);
  EXPECT_EQ(json["oracle_share_total"], 0.987);
  EXPECT_EQ(json["oracle_share_median"], 0.9911);
  EXPECT_EQ(json["time_vs_sync"], 0.5);
  EXPECT_EQ(json["cutoff_mean"], 8.25);
  EXPECT_DOUBLE_EQ(json["decision_us_p50"].get<double>(), 12.34);
  EXPECT_DOUBLE_EQ(json["decision_us_p99"].get<double>(), 2'500.0);
  EXPECT_EQ(json["inclusion_min"], 0.031);
  EXPECT_EQ(json["warmup"], 20);
  EXPECT_EQ(json["measured_steps"], 1'480);
  EXPECT_EQ(json["objective"], "rate");
  EXPECT_EQ(json["trace"], "job.csv");
}

TEST(ReplayReport, NeverPutsNanIntoJson) {
  ReplayRow strange = row("sync");
  strange.result.inclusion_min = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(nlohmann::json::parse(to_json_line({"\xff.csv", "rate", 0}, strange))["inclusion_min"]
                  .is_null());
}

}  // namespace
}  // namespace drover
