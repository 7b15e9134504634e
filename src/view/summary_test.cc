// The summary must agree with the record, fit on a screen, and never put NaN into JSON.
#include "view/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/event_samples.h"
#include "store/test_run.h"
#include "view/text_format.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

// Four workers, 200 steps of 10 ms; worker 3 is the last, except that worker 1 is in every fourth
// step.
void record_run(RunWriter& writer, uint32_t workers = 4) {
  for (uint32_t worker = 0; worker < workers; ++worker) {
    DROVER_EXPECT_OK(writer.on_peer({Peer{Role::kWorker, worker}, "here", 100 + worker}));
  }
  DROVER_EXPECT_OK(writer.on_peer({Peer{Role::kShard, 0}, "here", 50}));
  for (Step step = 0; step < 200; ++step) {
    StepRecord record = sample_step(step, workers);
    record.elapsed = 10ms;
    record.late = step % 10 == 0 ? 1 : 0;
    if (step % 4 == 0) record.last_worker = 1;
    record.closing = std::chrono::microseconds(step + 1);
    if (step == 7 || step == 9) record.undecided = std::chrono::microseconds(step);
    DROVER_EXPECT_OK(writer.on_step(record, sample_arrivals(step, workers)));
  }
}

RunSummary summary_at(const std::string& path) {
  auto summary = summarize(reader_at(path));
  if (!summary) ADD_FAILURE() << summary.error().message;
  return std::move(summary).value();
}

TEST(Summary, AgreesWithTheRecord) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  record_run(*writer);
  DROVER_EXPECT_OK(writer->on_evaluation({100, 1s, 0.9, 0.5, 10'000}));
  DROVER_EXPECT_OK(writer->on_evaluation({200, 2s, 0.5, 0.875, 10'000}));
  DROVER_EXPECT_OK(
      writer->on_event(lost_event(1s, 100, Peer{Role::kWorker, 2}, "connection closed")));
  DROVER_EXPECT_OK(writer->on_event({1s, 100, Peer{Role::kWorker, 2}, event::Joined{}}));
  DROVER_EXPECT_OK(writer->on_end({.outcome = RunOutcome::kCompleted,
                                   .reason = "",
                                   .elapsed = 2s,
                                   .parameters_digest = 0xabc,
                                   .memory_bytes = {{Peer{Role::kShard, 0}, 30'000'000},
                                                    {Peer{Role::kWorker, 0}, 250'000'000}}}));
  const RunSummary summary = summary_at(path);
  EXPECT_EQ(summary.tables.path, path);
  EXPECT_EQ(summary.tables.end.outcome, RunOutcome::kCompleted);
  EXPECT_EQ(summary.sums.step_count(), 200u);
  EXPECT_EQ(summary.seconds(), 2.0);
  EXPECT_EQ(summary.workers(), 4u);
  EXPECT_EQ(summary.tables.shards, 1u);
  const RecentLearning recent = summary.sums.recent_learning();
  EXPECT_EQ(recent.steps, 10u);
  double loss = 0.0;
  for (int step = 190; step < 200; ++step) loss += 2.0 / (step + 1) / 10;
  EXPECT_NEAR(recent.loss, loss, 1e-12);
  ASSERT_EQ(summary.waited_for(), (std::vector<WorkerId>{3, 1, 2, 0}));
  EXPECT_EQ(summary.sums.workers()[3].last, 150u);
  ASSERT_EQ(summary.lost.size(), 1u);

  const auto json = nlohmann::json::parse(to_json_line(summary));
  EXPECT_EQ(json["steps"], 200);
  EXPECT_EQ(json["seconds"], 2.0);
  EXPECT_EQ(json["samples_per_second"], 25'600.0);
  EXPECT_EQ(json["steps_per_second"], 100.0);
  EXPECT_EQ(json["loss"], recent.loss);
  EXPECT_EQ(json["test_accuracy"], 0.875);
  EXPECT_EQ(json["gradients_used"], 800);
  EXPECT_EQ(json["gradients_late"], 20);
  EXPECT_EQ(json["run_file"], path);
  EXPECT_EQ(json["outcome"], "completed");
  EXPECT_EQ(json["parameters_digest"], "0000000000000abc");
  EXPECT_EQ(json["step_overhead_seconds_median"], 0.008) << "worker 3 computes for 2 ms";
  EXPECT_EQ(json["closing_seconds_median"], 1e-4);
  EXPECT_EQ(json["undecided_seconds_max"], 9e-6);
  EXPECT_EQ(json["undecided_share"], 0.01);
  EXPECT_EQ(to_json_line(summary).find('\n'), std::string::npos);

  const std::string text = to_text(summary);
  for (const char* part :
       {"200 in 2 s: 100 steps/s, 25,600 samples/s", "87.50 % on 10,000 test samples",
        "800 used, 20 late, 0 refused", "worker 3    last in  75 % of steps",
        "closing    median 100 µs from the last needed gradient to new parameters; waited "
        "up to 9 µs for a decision in 1 % of steps\n",
        "worker 2 at step 100: connection closed", "250 MB in the largest process (worker 0)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Summary, MarksARunThatHasNotEnded) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  record_run(*writer_at(path));
  const RunSummary summary = summary_at(path);
  EXPECT_EQ(summary.tables.end.outcome, RunOutcome::kRunning);
  EXPECT_EQ(summary.seconds(), 2.0);  // from the first step's opening to the last one's close
  EXPECT_NE(to_text(summary).find("the run was killed"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(to_json_line(summary))["test_accuracy"], nullptr);
}

TEST(Summary, HasNoNumbersWithoutSteps) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  writer_at(path);
  const RunSummary summary = summary_at(path);
  const auto json = nlohmann::json::parse(to_json_line(summary));
  for (const char* key :
       {"samples_per_second", "steps_per_second", "loss", "test_accuracy", "step_seconds_median",
        "step_overhead_seconds_median", "closing_seconds_median", "undecided_seconds_max",
        "undecided_share", "parameters_digest"}) {
    EXPECT_EQ(json[key], nullptr) << key;
  }
  EXPECT_EQ(json["steps"], 0);
  EXPECT_NE(to_text(summary).find("none recorded"), std::string::npos);
}

TEST(Summary, TheLossIsUnknownIfNoWorkerReportedIt) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  StepRecord record = sample_step(0, 2);
  record.loss = std::numeric_limits<double>::quiet_NaN();
  DROVER_EXPECT_OK(writer->on_step(record, sample_arrivals(0, 2)));
  DROVER_EXPECT_OK(writer->flush());
  const std::string text = to_text(summary_at(path));
  EXPECT_NE(text.find("loss       unknown"), std::string::npos) << text;
}

TEST(Summary, ADivergedRunIsNullInJsonAndNaNInText) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  StepRecord record = sample_step(0, 1);
  record.loss = std::numeric_limits<double>::quiet_NaN();
  record.refused = 1;
  DROVER_EXPECT_OK(writer->on_step(record, {}));
  DROVER_EXPECT_OK(writer->on_end({}));
  const RunSummary summary = summary_at(path);
  EXPECT_EQ(nlohmann::json::parse(to_json_line(summary))["loss"], nullptr);
  EXPECT_NE(to_text(summary).find("loss       NaN"), std::string::npos) << to_text(summary);
}

std::string text_with(const std::string& path, const RunHeader& header) {
  auto writer = RunWriter::create(path, header);
  if (!writer) ADD_FAILURE() << writer.error().message;
  for (Step step = 0; step < 20; ++step) {
    std::vector<ArrivalRecord> arrivals = sample_arrivals(step, 4);
    arrivals[2].censored = step >= 5;
    arrivals[1].censored = step == 7 || step == 8;
    DROVER_EXPECT_OK(writer.value()->on_step(sample_step(step, 3), arrivals));
  }
  DROVER_EXPECT_OK(writer.value()->on_late_arrival({.step = 8, .worker = 1, .run_time = 50ms}));
  for (const auto restart : {1200us, 900us, 80000us}) {
    DROVER_EXPECT_OK(writer.value()->on_abandoned(
        {.step = 9, .worker = 2, .wasted = 500us, .restart = restart, .resumed = 10}));
  }
  DROVER_EXPECT_OK(writer.value()->on_end({}));
  return to_text(summary_at(path));
}

TEST(Summary, NamesTheWorkersWhoseGradientsWereDropped) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const std::string text = text_with(path, sample_header());
  EXPECT_NE(text.find("stragglers 17 of 80 gradients dropped, most often worker 2 (75 % of its "
                      "steps), worker 1 (10 %)\n"),
            std::string::npos)
      << text;
  // In time: 20 x (0.5 + 2) + 18 x 1 + 5 x 1.5 ms. Wasted: 2 ms of worker 1, 22.5 ms of worker 2,
  // and 1.5 ms of an aborted gradient.
  for (const char* part : {"inclusion  lowest 25 % (worker 2), median 90 %\n",
                           "aborted    3 gradients, restart after 1.2 ms (median); 25.6 % of "
                           "computing time wasted\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  const auto json = nlohmann::json::parse(to_json_line(summary_at(path)));
  EXPECT_EQ(json["gradients_left_behind"], 17);
  EXPECT_EQ(json["stopped"], 3);
  EXPECT_EQ(json["restart_seconds_median"], 0.0012);
  EXPECT_NEAR(json["wasted_share"], 26.0 / 101.5, 1e-12);
  for (const auto& worker : json["waited_for"]) {
    const std::vector<int> expected = {0, 2, 15, 0};
    EXPECT_EQ(worker["left_behind"], expected[worker["worker"]]);
    EXPECT_DOUBLE_EQ(worker["inclusion"], 1.0 - expected[worker["worker"]] / 20.0);
  }
}

TEST(Summary, OfAReplayHasNoLearning) {
  const TempFolder folder;
  RunHeader header = sample_header();
  header.settings = {{"replay", "job.csv"}, {"policy", "ecdf"}};
  const std::string text = text_with(folder.file("run.db"), header);
  EXPECT_NE(text.find("job        replay of job.csv, 4 workers, policy ecdf\n"), std::string::npos)
      << text;
  for (const char* part : {"loss", "samples", "shard", "closing"})
    EXPECT_EQ(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Summary, MarksASimulation) {
  const TempFolder folder;
  RunHeader header = sample_header();
  header.settings.emplace_back("scenario", "small.toml");
  const std::string text = text_with(folder.file("run.db"), header);
  EXPECT_NE(text.find("simulated  small.toml; all times are virtual\n"), std::string::npos) << text;
  EXPECT_NE(text.find("never waited for a decision\n"), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(to_json_line(summary_at(folder.file("run.db"))))["scenario"],
            "small.toml");
}

TEST(Summary, OfALargeRunFitsOnAScreen) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  record_run(*writer, 60);
  for (uint32_t worker = 0; worker < 60; ++worker) {
    DROVER_EXPECT_OK(writer->on_event(lost_event(1s, 1, Peer{Role::kWorker, worker}, "gone")));
  }
  for (Step step = 0; step < 200; ++step)
    DROVER_EXPECT_OK(
        writer->on_decision({.step = step, .cutoff = step < 100 ? 60U : 50U, .alive = 60}));
  DROVER_EXPECT_OK(writer->on_late_arrival({.step = 8, .worker = 1, .run_time = 50ms}));
  DROVER_EXPECT_OK(writer->on_abandoned({.step = 9, .worker = 2, .wasted = 1ms, .restart = 1ms}));
  DROVER_EXPECT_OK(writer->on_evaluation({200, 2s, 0.5, 0.875, 10'000}));
  RunEnd end;
  end.memory_bytes = {{Peer{Role::kWorker, 0}, 1}};
  DROVER_EXPECT_OK(writer->on_end(end));
  RunSummary summary = summary_at(path);
  summary.tables.warning = "the end is missing";
  summary.tables.header.settings.emplace_back("scenario", "small.toml");
  const std::string text = to_text(summary);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 25) << text;
  EXPECT_NE(text.find("aborted"), std::string::npos) << text;
  EXPECT_NE(text.find("and 57 more"), std::string::npos) << text;
  EXPECT_NE(text.find("cutoff     50 to 60 of 60 workers, mean 55\n"), std::string::npos) << text;
}

TEST(Summary, PlotsTheCutoff) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  record_run(*writer);
  // The last decision of a step takes effect; the first ten steps have none.
  for (Step step = 10; step < 200; ++step) {
    DROVER_EXPECT_OK(writer->on_decision({.step = step, .cutoff = 1, .alive = 4}));
    DROVER_EXPECT_OK(
        writer->on_decision({.step = step, .cutoff = step < 100 ? 4U : 2U, .alive = 4}));
  }
  DROVER_EXPECT_OK(writer->on_decision({.step = 200, .cutoff = 1, .alive = 4}));  // never closed
  DROVER_EXPECT_OK(writer->on_end({}));
  const RunSummary summary = summary_at(path);
  const CutoffTotals& cutoff = summary.sums.cutoff();
  EXPECT_EQ(cutoff.least, 2u);
  EXPECT_EQ(cutoff.most, 4u);
  EXPECT_NEAR(cutoff.mean.value(), (90 * 4 + 100 * 2) / 190.0, 1e-12);
  const std::vector<CurvePoint> curve = curve_of(summary.sums.steps(), 40);
  ASSERT_EQ(curve.size(), 40u);
  EXPECT_TRUE(std::isnan(curve[1].cutoff)) << "steps 5 to 9";
  EXPECT_EQ(curve[2].cutoff, 4.0);
  EXPECT_EQ(curve[20].cutoff, 2.0);
  std::string drawn = "           ××";
  for (int i = 2; i < 40; ++i) drawn += i < 20 ? "█" : "▁";
  EXPECT_NE(to_text(summary).find(drawn + "\n"), std::string::npos) << to_text(summary);
  const auto json = nlohmann::json::parse(to_json_line(summary));
  EXPECT_EQ(json["cutoff_min"], 2);
  EXPECT_EQ(json["cutoff_max"], 4);
}

TEST(Summary, DoesNotPlotAConstantCutoff) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  record_run(*writer);
  for (Step step = 0; step < 200; ++step)
    DROVER_EXPECT_OK(writer->on_decision({.step = step, .cutoff = 4, .alive = 4}));
  DROVER_EXPECT_OK(writer->on_end({}));
  EXPECT_NE(to_text(summary_at(path)).find("cutoff     4 in every step\n"), std::string::npos);
}

TEST(Summary, AcceptsAFileNameThatIsNotUtf8) {
  RunSummary summary;
  summary.tables.path = "caf\xe9.db";
  EXPECT_TRUE(nlohmann::json::parse(to_json_line(summary))["run_file"].is_string());
}

TEST(Sparkline, RunsFromLowestToHighest) {
  EXPECT_EQ(sparkline({}), "");
  EXPECT_EQ(sparkline({5.0, 5.0}), "▁▁");
  EXPECT_EQ(sparkline({0, 1, 2, 3, 4, 5, 6, 7}), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline({1.0, std::nan(""), -1.0, INFINITY}), "█×▁×");
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(sparkline({-most, most}), "▁█");
}

}  // namespace
}  // namespace drover
