// All views of a run have the same numbers: summary, metrics, dashboard, report and Markdown.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/event_samples.h"
#include "view/export/exports_test_run.h"
#include "view/export/metrics_text.h"
#include "view/random_run.h"
#include "view/report.h"
#include "view/run_follower.h"
#include "view/run_json.h"
#include "view/summary.h"

namespace drover {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

// The views of one run file.
struct Views {
  json summary;
  json page;
  json report;
  std::map<std::string, double> metrics;
  std::string markdown;

  // A row of the Markdown table.
  std::string row(const std::string& name) const {
    const size_t begin = markdown.find("| " + name + " | ");
    if (begin == std::string::npos) return "no row " + name;
    return markdown.substr(begin, markdown.find('\n', begin) - begin);
  }
  const json& page_worker(WorkerId worker) const { return page["workers"].at(worker); }
  double metric(const std::string& name, WorkerId worker) const {
    return metrics.at(name + "{worker=\"" + std::to_string(worker) + "\"}");
  }
};

std::map<std::string, double> samples_in(const std::string& text) {
  std::map<std::string, double> samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const size_t space = line.rfind(' ');
    samples[line.substr(0, space)] = std::stod(line.substr(space + 1));
  }
  return samples;
}

Views views_of(const std::string& path) {
  Views views;
  views.summary = json::parse(to_json_line(summarize(reader_at(path)).value()));
  RunFollower follower(only_run(path));
  while (follower.poll().value() == RunFollower::PollResult::kMoreToRead) {
  }
  views.page = json::parse(all_json(follower.snapshot({})));
  views.metrics = samples_in(metrics_text(follower.run()));
  const ReportedRun report = read_for_report(path, {}).value();
  views.report = json::parse(all_json(report.snapshot));
  views.markdown = report_markdown({report}, {});
  return views;
}

// The page's numbers have six digits.
void expect_near(const json& value, const json& other) {
  if (value.is_null() || other.is_null()) {
    EXPECT_EQ(value, other);
    return;
  }
  const auto of = other.get<double>();
  EXPECT_NEAR(value.get<double>(), of, 1e-5 * std::abs(of) + 1e-12);
}

void expect_same_totals(const Views& views) {
  const auto& [summary, page, report, metrics, markdown] = views;
  const json& totals = page["totals"];
  for (const auto& [key, in_page, in_metrics] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"gradients_used", "used", "drover_gradients_used_total"},
           {"gradients_late", "late", "drover_gradients_late_total"},
           {"gradients_refused", "refused", "drover_gradients_refused_total"}}) {
    SCOPED_TRACE(key);
    EXPECT_EQ(summary[key], totals[in_page]);
    EXPECT_EQ(summary[key].get<double>(), metrics.at(in_metrics));
  }
  EXPECT_EQ(summary["steps"], page["progress"]["step"]);
  EXPECT_EQ(summary["steps"].get<double>(), metrics.at("drover_steps_total"));
  EXPECT_EQ(totals["samples"].get<double>(), metrics.at("drover_samples_total"));
  // Workers that joined, and worker ids.
  EXPECT_LE(summary["workers"], page["run"]["workers"]);
  EXPECT_EQ(summary["shards"], page["run"]["shards"]);
  EXPECT_EQ(summary["outcome"], page["run"]["outcome"]);
  expect_near(totals["loss"], summary["loss"]);
  expect_near(totals["test_accuracy"], summary["test_accuracy"]);
  expect_near(totals["test_loss"], summary["test_loss"]);
  expect_near(totals["step_median_s"], summary["step_seconds_median"]);
  expect_near(totals["step_p90_s"], summary["step_seconds_p90"]);
  expect_near(page["progress"]["elapsed_s"], summary["seconds"]);
  expect_near(page["progress"]["steps_per_s"], summary["steps_per_second"]);
  expect_near(totals["waited_s"], metrics.at("drover_step_seconds_sum"));
  expect_near(totals["saved_s"], metrics.at("drover_saved_seconds_total"));
  EXPECT_GT(totals["saved_s"], 0.0);
}

void expect_same_workers(const Views& views) {
  const json& summary = views.summary;
  uint64_t missed = 0;
  ASSERT_FALSE(summary["waited_for"].empty());
  for (const json& line : summary["waited_for"]) {
    const auto worker = line["worker"].get<WorkerId>();
    SCOPED_TRACE(worker);
    const json& own = views.page_worker(worker);
    const uint64_t own_missed = own["late"].get<uint64_t>() + own["censored"].get<uint64_t>();
    missed += own_missed;
    EXPECT_EQ(line["left_behind"], own_missed);
    EXPECT_EQ(views.metric("drover_worker_late_total", worker), own_missed);
    EXPECT_EQ(views.metric("drover_worker_steps_total", worker), own["steps"].get<double>());
    EXPECT_EQ(views.metric("drover_worker_last_total", worker), own["last"].get<double>());
    expect_near(line["share"], own["last"].get<double>() / summary["steps"].get<double>());
    expect_near(own["inclusion"], line["inclusion"]);
    expect_near(own["inclusion"], views.metric("drover_worker_inclusion_ratio", worker));
    expect_near(own["median_s"], line["run_time_seconds_median"]);
    EXPECT_EQ(own["median_exact"], line["run_time_exact"]);
  }
  EXPECT_EQ(summary["gradients_left_behind"], missed);
}

void expect_same(const std::string& path) {
  const Views views = views_of(path);
  expect_same_totals(views);
  expect_same_workers(views);
  const json& summary = views.summary;
  for (const char* part : {"run", "totals", "workers", "steps", "heat", "evaluations", "decisions"})
    EXPECT_EQ(views.report[part], views.page[part]) << part;
  // Cutoffs: means over steps. The page has means over buckets.
  double cutoffs = 0.0;
  double steps = 0.0;
  const json& series = views.page["steps"];
  const auto per = series["per"].get<double>();
  for (size_t i = 0; i < series["step"].size(); ++i) {
    if (series["cutoff"][i].is_null()) continue;
    const double count =
        std::min(per, summary["steps"].get<double>() - series["step"][i].get<double>());
    cutoffs += count * series["cutoff"][i].get<double>();
    steps += count;
  }
  if (per == 1.0) {
    expect_near(cutoffs / steps, summary["cutoff_mean"]);
  }
  const auto number = [](const json& value) {
    return value.is_null() ? std::string("-") : fmt::format("{:.4g}", value.get<double>());
  };
  EXPECT_EQ(views.row("training loss"), "| training loss | " + number(summary["loss"]) + " |");
  EXPECT_EQ(views.row("test loss"), "| test loss | " + number(summary["test_loss"]) + " |");
  EXPECT_EQ(views.row("workers"), "| workers | " + views.page["run"]["workers"].dump() + " |");
  EXPECT_EQ(views.row("steps per second"),
            "| steps per second | " + number(summary["steps_per_second"]) + " |");
}

TEST(Views, AgreeAboutRandomRuns) {
  for (const uint64_t seed : {1u, 2u, 5u, 18u}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TempFolder folder;
    expect_same(random_run_file(folder, seed, 5, 60 * seed));
  }
}

TEST(Views, AgreeAboutRunsWithAllOutcomesOfGradients) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TempFolder folder;
    MixedRun{.seed = seed}.record(folder.file("run.db"), 400);
    expect_same(folder.file("run.db"));
  }
}

// One of four workers never joined, some steps have no gradient in time, some have no decision, and
// training diverges.
TEST(Views, AgreeAboutAnUnusualRun) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  for (const WorkerId worker : {0u, 2u, 3u})
    DROVER_EXPECT_OK(writer->on_peer({Peer{Role::kWorker, worker}, "here", 100 + worker}));
  for (Step step = 0; step < 1200; ++step) {
    const bool none = step % 10 == 3;
    if (step % 20 == 5)
      DROVER_EXPECT_OK(writer->on_decision({.step = step, .cutoff = step < 600 ? 2U : 3U}));
    StepRecord record{
        .step = step,
        .at = 10ms * step,
        .elapsed = 10ms,
        .contributors = none ? 0U : 2U,
        .late = none ? 1U : 0U,
        .samples = 64,
        .loss = none || step > 1195 ? std::nan("") : 1.0 / (1.0 + static_cast<double>(step)),
        .last_worker = none ? 0U : 2U};
    DROVER_EXPECT_OK(writer->on_step(record, {{step, 0, none ? 10ms : 4ms, none},
                                              {step, 2, none ? 10ms : 8ms, none},
                                              {step, 3, 10ms, true}}));
    if (none) DROVER_EXPECT_OK(writer->on_late_arrival({step, 2, 30ms, false}));
  }
  DROVER_EXPECT_OK(writer->on_event(lost_event(1s, 100, Peer{Role::kWorker, 3}, "closed")));
  DROVER_EXPECT_OK(writer->on_event({2s, 200, Peer{Role::kWorker, 0}, event::Left{}}));
  DROVER_EXPECT_OK(writer->on_end({.outcome = RunOutcome::kFailed, .elapsed = 12s}));
  expect_same(path);

  const Views views = views_of(path);
  EXPECT_EQ(views.summary["workers"], 3) << "joined";
  EXPECT_EQ(views.page["run"]["workers"], 4) << "as in the settings";
  EXPECT_EQ(views.page_worker(0)["last"], 0);
  EXPECT_EQ(views.page_worker(2)["last"], 1080);
  EXPECT_EQ(views.page_worker(0)["state"], "finished");
  EXPECT_EQ(views.page_worker(3)["state"], "lost");
  EXPECT_EQ(views.metrics.at("drover_workers_lost_total"), 1.0);
  EXPECT_EQ(views.summary["lost"].size(), 1u);
  EXPECT_EQ(views.summary["loss"], nullptr) << "it has diverged";
  // 120 steps of 20 ms have no gradient in time. In the others the bound is 2 ms after the last.
  expect_near(views.page["totals"]["saved_s"], 120 * 0.020 + 1080 * 0.002);
  // A decision is in force until the next one; the first five steps have none.
  expect_near(views.summary["cutoff_mean"], (600.0 * 2 + 595.0 * 3) / 1195.0);
}

}  // namespace
}  // namespace drover
