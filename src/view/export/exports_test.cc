// Exports match the record in every format, and are complete or absent.
#include "view/export/exports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "store/npy.h"
#include "store/trace.h"
#include "view/export/exports_test_run.h"

namespace drover {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// Cells by line, without quotes.
std::vector<std::vector<std::string>> read_csv(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row(1);
  bool quoted = false;
  const std::string text = content_of(path);
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      const bool twice = quoted && i + 1 < text.size() && text[i + 1] == '"';
      if (twice) row.back() += text[++i];
      if (!twice) quoted = !quoted;
    } else if (c == ',' && !quoted) {
      row.emplace_back();
    } else if (c == '\n' && !quoted) {
      rows.push_back(std::exchange(row, std::vector<std::string>(1)));
    } else {
      row.back() += c;
    }
  }
  return rows;
}

ExportPlan plan_for(const RunReader& reader, const std::string& out) {
  const auto span = recorded_steps(reader);
  EXPECT_TRUE(span);
  return {.out = out, .steps = span.value(), .workers = 5};
}

Exported expect_exported(Result<Exported> exported) {
  if (!exported) {
    ADD_FAILURE() << exported.error().message;
    return {};
  }
  return std::move(exported).value();
}

using Exporter = Result<Exported> (*)(const RunReader&, const ExportPlan&);
constexpr Exporter kAll[] = {export_csv, export_npy, export_perfetto, export_trace};

// --- Iterating over steps

TEST(WalkSteps, VisitsTheSameForAnyNumberOfStepsAtOnce) {
  const TempFolder folder;
  MixedRun{}.record(folder.file("run.db"), 30);
  const RunReader reader = reader_at(folder.file("run.db"));
  const auto all = reader.arrivals();
  ASSERT_TRUE(all);
  for (const uint32_t workers : {0U, 1U, 30'000U, 50'000U, 4'000'000'000U}) {
    Step next = 3;
    size_t place = 0;
    while (all.value()[place].arrival.step < 3) ++place;
    DROVER_EXPECT_OK(walk_steps(reader, {3, 29}, workers, [&](const WalkedStep& walked) {
      EXPECT_EQ(walked.step.step, next++);
      EXPECT_EQ(walked.decisions.size(), 1u);
      for (const RecordedArrival& each : walked.arrivals) {
        EXPECT_EQ(each.arrival.step, walked.step.step);
        EXPECT_EQ(each.arrival.worker, all.value()[place].arrival.worker);
        ++place;
      }
      return done();
    }));
    EXPECT_EQ(next, 29u);
    EXPECT_EQ(all.value()[place].arrival.step, 29u) << "all were visited";
  }
}

TEST(WalkSteps, EndsAtTheFirstError) {
  const TempFolder folder;
  MixedRun{}.record(folder.file("run.db"), 10);
  int visits = 0;
  const Status status =
      walk_steps(reader_at(folder.file("run.db")), {0, 10}, 5, [&](const WalkedStep&) -> Status {
        ++visits;
        return system_error("enough");
      });
  EXPECT_FALSE(status);
  EXPECT_EQ(visits, 1);
}

// --- CSV

TEST(ExportCsv, HasEveryTableWithUnitsInItsHeader) {
  const TempFolder folder;
  MixedRun{}.record(folder.file("run.db"), 20);
  const RunReader reader = reader_at(folder.file("run.db"));
  const Exported exported =
      expect_exported(export_csv(reader, plan_for(reader, folder.file("tables"))));
  EXPECT_EQ(exported.files.size(), 9u);
  const auto steps = read_csv(folder.file("tables/steps.csv"));
  ASSERT_EQ(steps.size(), 21u);
  EXPECT_THAT(steps[0], testing::Contains("elapsed_seconds"));
  for (const auto& row : steps) EXPECT_EQ(row.size(), steps[0].size());
  const auto loss =
      static_cast<size_t>(std::find(steps[0].begin(), steps[0].end(), "loss") - steps[0].begin());
  EXPECT_EQ(steps[5][loss], "") << "NaN is blank";
  EXPECT_EQ(std::stod(steps[6][loss]), 2.0 / 6.0) << "to the last bit";
  EXPECT_EQ(steps[8][3], "3") << "the cutoff of step 7";
  EXPECT_EQ(read_csv(folder.file("tables/decisions.csv"))[1][5], "because, \"well\"");
  EXPECT_THAT(read_csv(folder.file("tables/events.csv"))[1],
              ElementsAre(testing::_, "3", "lost", "worker 1", "it said \"bye\", and left",
                          "disconnected", "", "it said \"bye\", and left"));
  EXPECT_THAT(read_csv(folder.file("tables/abandoned.csv"))[1],
              ElementsAre("2", "1", "0.001000000", "0.000000000", "4"));
  EXPECT_THAT(read_csv(folder.file("tables/peers.csv"))[1],
              ElementsAre("worker 0", "here", "100", "77"));
  EXPECT_THAT(read_csv(folder.file("tables/run.csv")),
              testing::Contains(ElementsAre("setting workers", "4")));
}

TEST(ExportCsv, HasEveryArrivalToTheNanosecond) {
  const TempFolder folder;
  MixedRun{.seed = 7}.record(folder.file("run.db"), 40);
  const RunReader reader = reader_at(folder.file("run.db"));
  expect_exported(export_csv(reader, plan_for(reader, folder.file("tables"))));
  const auto rows = read_csv(folder.file("tables/arrivals.csv"));
  const auto arrivals = reader.arrivals();
  ASSERT_TRUE(arrivals);
  ASSERT_EQ(rows.size(), arrivals.value().size() + 1);
  for (size_t i = 0; i < arrivals.value().size(); ++i) {
    const RecordedArrival& each = arrivals.value()[i];
    const auto& row = rows[i + 1];
    EXPECT_EQ(std::stoull(row[0]), each.arrival.step);
    EXPECT_EQ(std::stoull(row[1]), each.arrival.worker);
    std::string digits = row[2];
    digits.erase(digits.find('.'), 1);
    EXPECT_EQ(std::stoll(digits), each.arrival.run_time.count());
    EXPECT_EQ(row[3], each.arrival.censored ? "1" : "0");
    EXPECT_EQ(row[4], each.late ? "1" : "0");
  }
}

TEST(SecondsText, IsExact) {
  EXPECT_EQ(seconds_text(0ns), "0.000000000");
  EXPECT_EQ(seconds_text(1'234'567'890ns), "1.234567890");
  EXPECT_EQ(seconds_text(-5ns), "-0.000000005");
  EXPECT_EQ(seconds_text(Duration::min()), "-9223372036.854775808");
}

// --- Matrices

struct Matrix {
  NpyMatrix shape;
  std::vector<double> values;
};

Matrix read_matrix(const std::string& path) {
  const std::string bytes = content_of(path);
  EXPECT_TRUE(bytes.starts_with(kNpyMark)) << path;
  const size_t length =
      static_cast<unsigned char>(bytes[8]) + size_t{256} * static_cast<unsigned char>(bytes[9]);
  EXPECT_EQ((10 + length) % 64, 0u) << "NPY data is aligned";
  EXPECT_EQ(bytes[9 + length], '\n');
  const auto shape = parse_npy_header(std::string_view(bytes).substr(10, length));
  EXPECT_TRUE(shape);
  Matrix matrix{shape.value(), std::vector<double>(shape.value().rows * shape.value().columns)};
  EXPECT_EQ(bytes.size(), 10 + length + 8 * matrix.values.size());
  std::memcpy(matrix.values.data(), bytes.data() + 10 + length, 8 * matrix.values.size());
  return matrix;
}

TEST(ExportNpy, HasTimesInOneFileAndBoundsInTheOther) {
  const TempFolder folder;
  MixedRun{.seed = 3}.record(folder.file("run.db"), 50);
  const RunReader reader = reader_at(folder.file("run.db"));
  ExportPlan plan = plan_for(reader, folder.file("times.npy"));
  plan.steps = {10, 45};
  const Exported exported = expect_exported(export_npy(reader, plan));
  EXPECT_THAT(exported.files,
              ElementsAre(folder.file("times.npy"), folder.file("times.bounds.npy")));
  EXPECT_THAT(exported.notes, ElementsAre(HasSubstr("only a lower bound is known")));
  const Matrix times = read_matrix(folder.file("times.npy"));
  const Matrix bounds = read_matrix(folder.file("times.bounds.npy"));
  ASSERT_EQ(times.shape.rows, 35u);
  ASSERT_EQ(times.shape.columns, 5u);
  std::vector<double> true_times(times.values.size(), std::nan(""));
  std::vector<double> true_bounds = true_times;
  const auto arrivals = reader.arrivals(10, 45);
  ASSERT_TRUE(arrivals);
  for (const RecordedArrival& each : arrivals.value()) {
    const size_t place = (each.arrival.step - 10) * 5 + each.arrival.worker;
    (each.arrival.censored ? true_bounds : true_times)[place] = seconds(each.arrival.run_time);
  }
  for (size_t i = 0; i < true_times.size(); ++i) {
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    EXPECT_TRUE(same(times.values[i], true_times[i])) << i;
    EXPECT_TRUE(same(bounds.values[i], true_bounds[i])) << i;
  }
}

TEST(ExportTrace, ReadsBackAsTheRunItself) {
  const TempFolder folder;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const std::string run = folder.file("run" + std::to_string(seed) + ".db");
    MixedRun{.seed = seed, .workers = 7}.record(run, 60);
    const RunReader reader = reader_at(run);
    const std::string out = folder.file("times" + std::to_string(seed) + ".csv");
    expect_exported(export_trace(reader, plan_for(reader, out)));
    const auto ours = read_trace(out);
    const auto direct = read_trace(run);
    ASSERT_TRUE(ours) << ours.error().message;
    ASSERT_TRUE(direct);
    EXPECT_EQ(ours.value().workers, direct.value().workers);
    ASSERT_EQ(ours.value().times.size(), direct.value().times.size());
    for (size_t i = 0; i < ours.value().times.size(); ++i) {
      const double a = ours.value().times[i];
      const double b = direct.value().times[i];
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << a << " " << b;
    }
  }
}

TEST(ExportTrace, OmitsStepsAndWorkersWithoutKnownRunTimes) {
  const TempFolder folder;
  {
    const auto writer = writer_at(folder.file("run.db"));
    for (Step step = 0; step < 4; ++step) {
      std::vector<ArrivalRecord> arrivals = sample_arrivals(step, 3);
      arrivals[1].censored = true;
      if (step == 2) arrivals[0].censored = arrivals[2].censored = true;
      DROVER_EXPECT_OK(writer->on_step(sample_step(step, 2), arrivals));
    }
    DROVER_EXPECT_OK(writer->on_end({}));
  }
  const RunReader reader = reader_at(folder.file("run.db"));
  const Exported exported =
      expect_exported(export_trace(reader, plan_for(reader, folder.file("t.csv"))));
  EXPECT_EQ(content_of(folder.file("t.csv")),
            "step,w0,w2\n0,0.001000000,0.003000000\n1,0.001000000,0.003000000\n"
            "3,0.001000000,0.003000000\n");
  EXPECT_THAT(exported.notes,
              ElementsAre(HasSubstr("6 of 12 run-times"), HasSubstr("1 step without")));
  EXPECT_TRUE(read_trace(folder.file("t.csv")));
}

TEST(ExportTrace, RefusesARunOfOneWorker) {
  const TempFolder folder;
  {
    const auto writer = writer_at(folder.file("run.db"));
    DROVER_EXPECT_OK(writer->on_step(sample_step(0, 1), sample_arrivals(0, 1)));
  }
  const RunReader reader = reader_at(folder.file("run.db"));
  const auto refused = export_trace(reader, plan_for(reader, folder.file("t.csv")));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("at least two workers"));
  EXPECT_FALSE(fs::exists(folder.file("t.csv")));
}

// --- Perfetto

using Json = nlohmann::json;

// Slices by track: process and thread.
std::map<std::pair<int, int>, std::vector<Json>> slices_of(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<Json>> slices;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") slices[{event["pid"], event["tid"]}].push_back(event);
  }
  return slices;
}

int64_t nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1e3);
}

// Checks the rules of Chrome's trace event format (JSON object format), more strictly than readers
// do: every process and track has a unique name; the slices of a track and the values of a counter
// are in chronological order; slices do not overlap.
void expect_chrome_trace(const Json& trace) {
  ASSERT_TRUE(trace.is_object());
  EXPECT_EQ(trace["displayTimeUnit"], "ms");
  ASSERT_TRUE(trace["traceEvents"].is_array());
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> tracks;
  std::map<std::pair<int, int>, int64_t> shown;  // end of the last slice, by track
  std::map<std::string, int64_t> counted;        // likewise by counter
  std::set<std::pair<int, std::string>> used;    // names of tracks
  std::set<int> processes_seen;
  for (const Json& event : trace["traceEvents"]) {
    SCOPED_TRACE(event.dump());
    ASSERT_TRUE(event.is_object());
    ASSERT_TRUE(event["name"].is_string());
    EXPECT_NE(event["name"], "");
    ASSERT_TRUE(event["pid"].is_number_integer());
    ASSERT_TRUE(event["args"].is_object());
    const int pid = event["pid"];
    EXPECT_GT(pid, 0);
    processes_seen.insert(pid);
    const std::string kind = event["ph"];
    if (kind != "C" && !event["name"].get<std::string>().starts_with("process_")) {
      ASSERT_TRUE(event["tid"].is_number_integer());
      EXPECT_GT(event["tid"], 0);
    }
    if (kind != "M") {
      ASSERT_TRUE(event["ts"].is_number());
      EXPECT_GE(event["ts"], 0.0);
    }
    if (kind == "M") {
      const std::string what = event["name"];
      if (what.ends_with("_sort_index")) {
        EXPECT_TRUE(event["args"]["sort_index"].is_number_integer());
        continue;
      }
      const std::string name = event["args"]["name"];
      EXPECT_NE(name, "");
      if (what == "process_name") {
        EXPECT_TRUE(processes.emplace(pid, name).second) << "it already has a name";
      } else {
        EXPECT_EQ(what, "thread_name");
        EXPECT_TRUE(tracks.emplace(std::pair(pid, event["tid"].get<int>()), name).second);
        EXPECT_TRUE(used.emplace(pid, name).second) << "duplicate name";
      }
    } else if (kind == "X") {
      ASSERT_TRUE(event["dur"].is_number());
      EXPECT_GT(nanoseconds(event["dur"]), 0);
      int64_t& end = shown[{pid, event["tid"].get<int>()}];
      EXPECT_GE(nanoseconds(event["ts"]), end) << "it overlaps or is out of order";
      end = nanoseconds(event["ts"]) + nanoseconds(event["dur"]);
    } else if (kind == "C") {
      EXPECT_FALSE(event["args"].empty());
      for (const Json& value : event["args"]) EXPECT_TRUE(value.is_number());
      int64_t& last = counted[event["name"]];
      EXPECT_GE(nanoseconds(event["ts"]), last);
      last = nanoseconds(event["ts"]);
    } else {
      EXPECT_EQ(kind, "i");
      EXPECT_EQ(event["s"], "g");
    }
  }
  for (const int process : processes_seen) EXPECT_TRUE(processes.contains(process)) << process;
  for (const auto& [track, end] : shown)
    EXPECT_TRUE(tracks.contains(track)) << track.first << " " << track.second;
  for (const auto& [track, name] : tracks)
    EXPECT_TRUE(shown.contains(track)) << name << " is empty";
}

TEST(ExportPerfetto, FollowsTheRulesOfTheFormat) {
  const TempFolder folder;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const std::string run = folder.file("run" + std::to_string(seed) + ".db");
    MixedRun{.seed = seed}.record(run, 60);
    const RunReader reader = reader_at(run);
    const std::string out = folder.file(std::to_string(seed) + ".json");
    expect_exported(export_perfetto(reader, plan_for(reader, out)));
    const Json trace = Json::parse(content_of(out));
    expect_chrome_trace(trace);
    std::set<std::string> tracks;
    for (const Json& event : trace["traceEvents"]) {
      if (event["name"] == "thread_name") tracks.insert(event["args"]["name"]);
    }
    EXPECT_THAT(tracks, ElementsAre("closing (slowest shard)", "shard 0", "shard 1", "steps",
                                    "worker 0", "worker 1", "worker 2", "worker 3", "worker 4"));
    std::set<std::string> kinds;
    const auto slices = slices_of(trace);
    for (const auto& [track, all] : slices) {
      for (const Json& slice : all) {
        if (track.first == 3) kinds.insert(slice["name"]);
      }
    }
    EXPECT_THAT(kinds, ElementsAre("compute", "cut", "late", "push", "wait"));
    // In microseconds: the slice of a step has its start and duration.
    const auto steps = reader.steps().value();
    ASSERT_EQ(slices.at({1, 1}).size(), steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(nanoseconds(slices.at({1, 1})[i]["ts"]), steps[i].at.count());
      EXPECT_EQ(nanoseconds(slices.at({1, 1})[i]["dur"]), steps[i].elapsed.count());
    }
  }
}

TEST(ExportPerfetto, DrawsHowBusyEachShardWas) {
  const TempFolder folder;
  MixedRun{}.record(folder.file("run.db"), 60);
  const RunReader reader = reader_at(folder.file("run.db"));
  expect_exported(export_perfetto(reader, plan_for(reader, folder.file("run.json"))));
  const auto slices = slices_of(Json::parse(content_of(folder.file("run.json"))));
  const auto steps = reader.steps().value();
  for (ShardId shard = 0; shard < 2; ++shard) {
    std::map<Step, Json> drawn;
    for (const Json& slice : slices.at({2, static_cast<int>(shard) + 1}))
      drawn[slice["args"]["step"]] = slice;
    for (const StepRecord& step : steps) {
      SCOPED_TRACE(step.step);
      const Duration busy = reader.shard_loads(step.step, step.step + 1).value()[shard].busy;
      ASSERT_EQ(drawn.contains(step.step), busy > Duration::zero());
      if (busy == Duration::zero()) continue;
      const Json& slice = drawn[step.step];
      EXPECT_EQ(slice["name"], "busy");
      EXPECT_EQ(nanoseconds(slice["dur"]), std::min(busy, step.elapsed).count());
      EXPECT_EQ(nanoseconds(slice["ts"]) + nanoseconds(slice["dur"]),
                (step.at + step.elapsed).count());
      EXPECT_DOUBLE_EQ(slice["args"]["busy_s"], seconds(busy));
    }
  }
}

TEST(ExportPerfetto, OmitsShardsWithoutRecords) {
  const TempFolder folder;
  {
    const auto writer = writer_at(folder.file("run.db"));
    DROVER_EXPECT_OK(writer->on_step(sample_step(0, 2), sample_arrivals(0, 2)));
    DROVER_EXPECT_OK(writer->on_end({}));
  }
  const RunReader reader = reader_at(folder.file("run.db"));
  expect_exported(export_perfetto(reader, plan_for(reader, folder.file("run.json"))));
  const Json trace = Json::parse(content_of(folder.file("run.json")));
  expect_chrome_trace(trace);
  for (const Json& event : trace["traceEvents"]) EXPECT_NE(event["pid"], 2);
}

TEST(ExportPerfetto, DrawsTheOutcomeOfEachGradient) {
  const TempFolder folder;
  {
    const auto writer = writer_at(folder.file("run.db"));
    StepRecord step = sample_step(0, 1);
    step.elapsed = 10ms;
    step.closing = 2ms;
    step.undecided = 500us;
    DROVER_EXPECT_OK(
        writer->on_step(step, {{.step = 0, .worker = 0, .run_time = 8ms, .compute = 6ms},
                               {.step = 0, .worker = 1, .run_time = 10ms, .censored = true},
                               {.step = 0, .worker = 2, .run_time = 10ms, .censored = true}}));
    DROVER_EXPECT_OK(
        writer->on_late_arrival({.step = 0, .worker = 2, .run_time = 13ms, .compute = 9ms}));
    step = sample_step(1, 1);
    step.at = 10ms;
    step.elapsed = 5ms;
    // Worker 2 computes its first gradient until 13 ms.
    DROVER_EXPECT_OK(
        writer->on_step(step, {{.step = 1, .worker = 0, .run_time = 5ms},
                               {.step = 1, .worker = 2, .run_time = 5ms, .censored = true}}));
    DROVER_EXPECT_OK(writer->on_end({}));
  }
  const RunReader reader = reader_at(folder.file("run.db"));
  expect_exported(export_perfetto(reader, plan_for(reader, folder.file("run.json"))));
  const auto drawn = [&](int process, int track) {
    std::vector<std::string> words;
    const auto slices = slices_of(Json::parse(content_of(folder.file("run.json"))));
    for (const Json& each : slices.at({process, track})) {
      const double from = each["ts"].get<double>() / 1e3;
      words.push_back(each["name"].get<std::string>() + " " + Json(from).dump() + " " +
                      Json(from + each["dur"].get<double>() / 1e3).dump());
    }
    return words;
  };
  EXPECT_THAT(drawn(3, 1),
              ElementsAre("compute 0.0 6.0", "push 6.0 8.0", "wait 8.0 10.0", "compute 10.0 15.0"));
  EXPECT_THAT(drawn(3, 2), ElementsAre("cut 0.0 10.0"));
  EXPECT_THAT(drawn(3, 3),
              ElementsAre("compute 0.0 9.0", "push 9.0 10.0", "late 10.0 13.0", "cut 13.0 15.0"));
  EXPECT_THAT(drawn(1, 2),
              ElementsAre("wait 0.0 8.0", "decide 8.0 8.5", "update 8.5 10.0", "wait 10.0 15.0"));
}

// --- All formats

TEST(Exports, LeaveNothingIfTheyAreInterrupted) {
  const TempFolder folder;
  MixedRun{}.record(folder.file("run.db"), 20);
  const RunReader reader = reader_at(folder.file("run.db"));
  for (const Exporter exporter : kAll) {
    ExportPlan plan = plan_for(reader, folder.file("out"));
    int calls = 0;
    plan.on_progress = [&](double share) -> Status {
      EXPECT_GE(share, 0.0);
      EXPECT_LE(share, 1.0);
      return ++calls < 7 ? done() : Status(Error{ErrorKind::kStopped, "enough"});
    };
    EXPECT_FALSE(exporter(reader, plan));
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.path()))
      names.push_back(entry.path().filename().string());
    EXPECT_THAT(names, ElementsAre("run.db"));
  }
}

TEST(Exports, RefuseToReplaceAnything) {
  const TempFolder folder;
  MixedRun{}.record(folder.file("run.db"), 20);
  const RunReader reader = reader_at(folder.file("run.db"));
  for (const Exporter exporter : kAll) {
    SCOPED_TRACE(std::find(std::begin(kAll), std::end(kAll), exporter) - std::begin(kAll));
    fs::remove_all(folder.file("out"));
    fs::remove_all(folder.file("out.bounds.npy"));
    ExportPlan plan = plan_for(reader, folder.file("out"));
    expect_exported(exporter(reader, plan));
    const auto refused = exporter(reader, plan);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("--force"));
    plan.force = true;
    expect_exported(exporter(reader, plan));
  }
  EXPECT_FALSE(export_csv(reader, plan_for(reader, folder.file("run.db")))) << "a file";
}

// An export ignores steps that are recorded while it is under way.
TEST(Exports, OfARunInProgressHaveTheStepsRecordedAtTheStart) {
  for (const Exporter exporter : kAll) {
    const TempFolder folder;
    const auto writer = writer_at(folder.file("run.db"));
    MixedRun run;
    run.start(*writer);
    Step next = 0;
    for (; next < 30; ++next) run.record_step(*writer, next);
    DROVER_EXPECT_OK(writer->flush());
    const RunReader reader = reader_at(folder.file("run.db"));
    ExportPlan plan = plan_for(reader, folder.file("growing"));
    ExportPlan still = plan_for(reader, folder.file("still"));
    expect_exported(exporter(reader, still));
    plan.workers = 40'000;  // two steps at a time
    plan.on_progress = [&](double) {
      run.workers = 9;  // four have joined
      run.record_step(*writer, next++);
      return writer->flush();
    };
    expect_exported(exporter(reader, plan));
    const bool tables = fs::is_directory(folder.file("still"));
    for (const char* name : {"/steps.csv", "/arrivals.csv", "/decisions.csv"}) {
      const std::string ending = tables ? name : "";
      EXPECT_EQ(content_of(folder.file("still" + ending)),
                content_of(folder.file("growing" + ending)));
    }
  }
}

// The file of a resumed run begins at its checkpoint.
TEST(RecordedSteps, OfAResumedRunBeginAtItsCheckpoint) {
  const TempFolder folder;
  {
    const auto writer = writer_at(folder.file("run.db"));
    MixedRun run;
    run.start(*writer);
    for (Step step = 20; step < 25; ++step) run.record_step(*writer, step);
    DROVER_EXPECT_OK(writer->on_end({.elapsed = run.now}));
  }
  const RunReader reader = reader_at(folder.file("run.db"));
  const auto span = recorded_steps(reader);
  ASSERT_TRUE(span);
  EXPECT_EQ(span.value().from, 20u);
  EXPECT_EQ(span.value().to, 25u);
  for (size_t i = 0; i < std::size(kAll); ++i) {
    const std::string out = folder.file("out" + std::to_string(i));
    const Exported exported =
        expect_exported(kAll[i](reader, {.out = out, .steps = span.value(), .workers = 5}));
    EXPECT_FALSE(exported.files.empty()) << i;
  }
}

TEST(RecordedSteps, AreEmptyInAnEmptyRun) {
  const TempFolder folder;
  writer_at(folder.file("run.db"));
  const auto span = recorded_steps(reader_at(folder.file("run.db")));
  ASSERT_TRUE(span);
  EXPECT_EQ(span.value().to, 0u);
}

}  // namespace
}  // namespace drover
