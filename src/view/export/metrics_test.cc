// The metrics match the record, and are valid in Prometheus' text format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "view/export/exports_test_run.h"
#include "view/export/metrics_text.h"

namespace drover {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Reads new data first.
std::string metrics_of(RecordedRun& run, const RunReader& reader) {
  DROVER_EXPECT_OK(run.read_all(reader));
  return metrics_text(run);
}

// Samples by name and labels.
std::map<std::string, double> samples_in(const std::string& text) {
  std::map<std::string, double> samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const size_t space = line.rfind(' ');
    EXPECT_TRUE(samples.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second)
        << line << " is a duplicate";
  }
  return samples;
}

TEST(Metrics, AgreeWithTheRecord) {
  const TempFolder folder;
  MixedRun{.seed = 5}.record(folder.file("run.db"), 120);
  const RunReader reader = reader_at(folder.file("run.db"));
  RecordedRun metrics;
  const auto samples = samples_in(metrics_of(metrics, reader));
  const auto totals = reader.totals();
  ASSERT_TRUE(totals);
  EXPECT_EQ(samples.at("drover_steps_total"), 120.0);
  EXPECT_EQ(samples.at("drover_samples_total"), static_cast<double>(totals.value().samples));
  EXPECT_EQ(samples.at("drover_gradients_used_total"),
            static_cast<double>(totals.value().gradients_used));
  EXPECT_EQ(samples.at("drover_step_seconds_count"), 120.0);
  EXPECT_EQ(samples.at("drover_step_seconds_bucket{le=\"+Inf\"}"), 120.0);
  EXPECT_EQ(samples.at("drover_step_seconds_bucket{le=\"0.01\"}"), 0.0);
  EXPECT_EQ(samples.at("drover_step_seconds_bucket{le=\"0.025\"}"), 120.0);
  EXPECT_EQ(samples.at("drover_deciding_seconds_bucket{le=\"0.0001\"}"), 80.0);
  EXPECT_NEAR(samples.at("drover_deciding_seconds_sum"), 40 * 0.0002, 1e-9);
  EXPECT_EQ(samples.at("drover_cutoff"), 5.0);
  EXPECT_EQ(samples.at("drover_workers_alive"), 5.0);
  EXPECT_EQ(samples.at("drover_workers_lost_total"), 1.0);
  EXPECT_EQ(samples.at("drover_test_accuracy"), 0.875);
  EXPECT_EQ(samples.at("drover_loss"), 2.0 / 120);
  EXPECT_EQ(samples.at("drover_run_state{state=\"completed\"}"), 1.0);
  EXPECT_EQ(samples.at("drover_run_state{state=\"running\"}"), 0.0);
  EXPECT_EQ(samples.at("drover_model_stale"), 0.0);
  const auto workers = reader.workers();
  ASSERT_TRUE(workers);
  for (const WorkerStatistics& worker : workers.value()) {
    const std::string label = "{worker=\"" + std::to_string(worker.worker) + "\"}";
    EXPECT_EQ(samples.at("drover_worker_steps_total" + label), static_cast<double>(worker.steps));
    EXPECT_EQ(samples.at("drover_worker_late_total" + label),
              static_cast<double>(worker.late + worker.censored));
    EXPECT_EQ(samples.at("drover_worker_last_total" + label), static_cast<double>(worker.last));
    EXPECT_DOUBLE_EQ(samples.at("drover_worker_inclusion_ratio" + label), worker.inclusion());
  }
  std::map<Step, std::pair<double, double>> longest;  // of all, of those in time
  const auto arrivals = reader.arrivals();
  ASSERT_TRUE(arrivals);
  for (const RecordedArrival& each : arrivals.value()) {
    auto& [all, in_time] = longest[each.arrival.step];
    all = std::max(all, seconds(each.arrival.run_time));
    if (!each.late && !each.arrival.censored)
      in_time = std::max(in_time, seconds(each.arrival.run_time));
  }
  double saved = 0.0;
  for (const auto& [step, times] : longest) saved += times.first - times.second;
  EXPECT_GT(saved, 0.0);
  EXPECT_NEAR(samples.at("drover_saved_seconds_total"), saved, 1e-9);
}

// Frequent reads give the same totals as a single one, and no total ever decreases.
TEST(Metrics, OfARunInProgressNeverDecrease) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    MixedRun run{.seed = seed};
    const auto writer = writer_at(folder.file("run.db"));
    run.start(*writer);
    const RunReader reader = reader_at(folder.file("run.db"));
    RecordedRun often;
    std::map<std::string, double> before;
    for (Step step = 0; step < 150; ++step) {
      run.record_step(*writer, step);
      if (run.uniform(step, 5'000) < 0.3) run.write_late(*writer);
      if (run.uniform(step, 5'001) > 0.2) continue;
      DROVER_EXPECT_OK(writer->flush());
      const auto now = samples_in(metrics_of(often, reader));
      EXPECT_EQ(now.at("drover_steps_total"), static_cast<double>(step + 1));
      for (const auto& [name, value] : before) {
        if (name.find("_total") == std::string::npos) continue;
        EXPECT_GE(now.at(name), value) << name;
      }
      before = now;
    }
    run.write_late(*writer);
    DROVER_EXPECT_OK(writer->on_end({}));
    RecordedRun once;
    const auto all = samples_in(metrics_of(once, reader));
    const auto sum = samples_in(metrics_of(often, reader));
    ASSERT_EQ(sum.size(), all.size());
    for (const auto& [name, value] : all) EXPECT_NEAR(sum.at(name), value, 1e-9) << name;
  }
}

TEST(Metrics, OfARunWithoutStepsOmitUnknownValues) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  const RunReader reader = reader_at(folder.file("run.db"));
  RecordedRun metrics;
  const std::string text = metrics_of(metrics, reader);
  EXPECT_THAT(text, HasSubstr("drover_steps_total 0\n"));
  EXPECT_THAT(text, HasSubstr("drover_run_state{state=\"running\"} 1\n"));
  for (const char* unknown : {"drover_loss", "drover_cutoff", "drover_test", "drover_worker_"})
    EXPECT_THAT(text, Not(HasSubstr(unknown)));
}

TEST(Metrics, HaveThePlannedStepsIfKnown) {
  const TempFolder folder;
  const auto metrics_with = [&](const std::string& file, Step steps) {
    RunHeader header = sample_header();
    header.settings.emplace_back("steps", std::to_string(steps));
    const auto writer = RunWriter::create(folder.file(file), header);
    EXPECT_TRUE(writer.ok());
    const RunReader reader = reader_at(folder.file(file));
    RecordedRun metrics;
    return metrics_of(metrics, reader);
  };
  EXPECT_THAT(metrics_with("planned.db", 500), HasSubstr("drover_steps_planned 500\n"));
  EXPECT_THAT(metrics_with("endless.db", kEndless), Not(HasSubstr("drover_steps_planned")));
}

TEST(Metrics, ModelIsStaleWhileTheNewestDecisionHasIt) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  const RunReader reader = reader_at(folder.file("run.db"));
  RecordedRun metrics;
  for (const Step step : {0, 1, 2}) {
    const bool stale = step == 1;
    DROVER_EXPECT_OK(writer->on_decision(
        {.step = step, .cutoff = 2, .alive = 3, .reason = "any", .model_stale = stale}));
    DROVER_EXPECT_OK(writer->flush());
    EXPECT_EQ(samples_in(metrics_of(metrics, reader)).at("drover_model_stale"), stale ? 1.0 : 0.0);
    DROVER_EXPECT_OK(writer->on_step(sample_step(step, 2), sample_arrivals(step, 3)));
  }
}

TEST(Metrics, HaveHelpAndTypeBeforeEverySampleAndEscapeLabels) {
  const TempFolder folder;
  RunHeader header = sample_header();
  header.settings.emplace_back("model", "a\\b\"c\nd");
  const auto writer = std::move(RunWriter::create(folder.file("run.db"), header)).value();
  StepRecord record = sample_step(0, 1);
  record.loss = std::nan("");
  std::vector<ArrivalRecord> arrivals = sample_arrivals(0, 1);
  for (Step step = 0; step < 4; ++step) {
    record.step = arrivals[0].step = step;
    arrivals[0].censored = step == 1;
    DROVER_EXPECT_OK(writer->on_step(record, arrivals));
  }
  DROVER_EXPECT_OK(writer->on_evaluation({.version = 4, .loss = INFINITY}));
  DROVER_EXPECT_OK(writer->flush());
  RecordedRun run;
  const std::string text = metrics_of(run, reader_at(folder.file("run.db")));
  EXPECT_THAT(text, HasSubstr(R"(model="a\\b\"c\nd")"));
  EXPECT_THAT(text, HasSubstr("drover_loss NaN\n"));
  EXPECT_THAT(text, HasSubstr("drover_test_loss +Inf\n"));
  EXPECT_THAT(text, HasSubstr("drover_worker_inclusion_ratio{worker=\"0\"} 0.75\n"));
  EXPECT_THAT(text, HasSubstr("drover_worker_last_total{worker=\"0\"} 3\n"));
  const std::regex sample(R"(([a-z_]+)(\{.*\})? (NaN|[+-]Inf|[0-9.e+-]+))");
  std::istringstream lines(text);
  std::string family;
  std::set<std::string> families;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << family << " is a duplicate";
      EXPECT_TRUE(line.ends_with(".")) << line;
    } else if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(line.starts_with("# TYPE " + family + " ")) << line;
      EXPECT_EQ(line.ends_with(" counter"), family.ends_with("_total")) << line;
    } else {
      std::smatch match;
      ASSERT_TRUE(std::regex_match(line, match, sample)) << line;
      EXPECT_TRUE(match[1].str().starts_with(family)) << line;
    }
  }
}

// --- Checks by promtool, where it is installed

bool has_promtool() { return std::system("promtool --version >/dev/null 2>&1") == 0; }

TEST(Promtool, AcceptsTheMetrics) {
  if (!has_promtool()) GTEST_SKIP() << "promtool is not installed (Debian: prometheus)";
  const TempFolder folder;
  MixedRun{}.record(folder.file("run.db"), 60);
  const RunReader reader = reader_at(folder.file("run.db"));
  RecordedRun metrics;
  const std::string page = folder.make_file("metrics.txt", metrics_of(metrics, reader));
  EXPECT_EQ(std::system(("promtool check metrics <" + page).c_str()), 0);
}

TEST(Promtool, AcceptsTheExamples) {
  if (!has_promtool()) GTEST_SKIP() << "promtool is not installed (Debian: prometheus)";
  const std::string in = "cd " DROVER_SOURCE_DIR "/examples/monitoring && promtool ";
  EXPECT_EQ(std::system((in + "check config prometheus.yml").c_str()), 0);
  EXPECT_EQ(std::system((in + "check rules alerts.yml").c_str()), 0);
  EXPECT_EQ(std::system((in + "test rules alerts_test.yml").c_str()), 0);
}

}  // namespace
}  // namespace drover
