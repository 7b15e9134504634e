// RunSnapshot: everything that the dashboard shows of a run at one moment, as values.
//
// docs/dashboard.md defines each number. Unknown numbers are NaN. Times are seconds; those named
// `at` are since the start of the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/run_record.h"
#include "store/run_header.h"
#include "view/recorded_run.h"

namespace drover {

enum class RunState : uint8_t {
  kWaiting,  // for the first step
  kRunning,
  kSilent,  // running according to its file, but has written nothing for a long time
  kCompleted,
  kInterrupted,
  kFailed,
};
std::string_view name_of(RunState state);

struct RunProgress {
  uint64_t step = 0;              // number of steps done
  std::optional<uint64_t> steps;  // planned number; absent if the workers' scripts determine it
  double elapsed_s = 0.0;
  double left_s = kUnknown;
  double steps_per_s = kUnknown;
  RunState state = RunState::kWaiting;
  double quiet_s = 0.0;  // since the last write to the run file
};

struct PageTotals {
  uint64_t samples = 0, used = 0, late = 0, refused = 0, censored = 0;
  double contributors_mean = kUnknown;
  double loss = kUnknown, accuracy = kUnknown;  // see RecentLearning
  double test_loss = kUnknown, test_accuracy = kUnknown;
  double step_median_s = kUnknown, step_p90_s = kUnknown;
  double waited_s = 0.0, wait_all_s = 0.0, saved_s = 0.0;  // see TimeTotals
  bool saved_exact = true;
  double saved_about_s = kUnknown;  // unknown without forecasts
};

struct DecisionLine {
  DecisionRecord decision;
  double at_s = 0.0;
};

struct WorkerLine {
  WorkerId worker = 0;
  std::string node;
  WorkerState state = WorkerState::kAlive;
  uint64_t steps = 0;
  double inclusion = kUnknown, recurrence = kUnknown;  // see WorkerTotals
  double median_s = kUnknown;
  bool median_exact = true;  // false: median_s is a lower bound
  uint64_t late = 0, censored = 0, last = 0;
};

struct ShardLine {
  ShardId shard = 0;
  double busy_share = kUnknown;
};

// The position of a run in an experiment.
struct RunPlace {
  std::string title;    // "calm / sync / seed 1"
  uint32_t number = 0;  // counted from 1
  uint32_t of = 0;      // number of runs; 0: the run is not part of an experiment
  bool operator==(const RunPlace&) const = default;
};

struct RunSnapshot {
  std::string file;
  RunPlace place;
  RunHeader header;
  RunEnd end;
  std::string warning;
  uint32_t workers = 0, shards = 0;
  RunProgress progress;
  PageTotals totals;
  StepSeries steps;
  std::vector<EvaluationRecord> evaluations;
  std::vector<DecisionLine> decisions;  // newest first
  HeatMap heat;
  std::vector<WorkerLine> worker_lines;
  std::vector<ShardLine> shard_lines;
  std::vector<EventRecord> events;  // newest first

  // A value of the settings or the environment; empty if absent.
  std::string setting(std::string_view key) const;
  std::string environment(std::string_view key) const;
};

// `quiet`: the time since the file was last written.
RunSnapshot snapshot_of(const RecordedRun& run, Duration quiet);

}  // namespace drover
