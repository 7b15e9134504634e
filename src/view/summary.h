// RunSummary: what became of a run, for the end of `drover train` and for `drover runs FILE`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/run_record.h"
#include "store/run_reader.h"

namespace drover {

// How many gradients steps waited for, by the last decision of each.
struct CutoffSummary {
  double mean = 0.0;
  uint32_t least = 0;
  uint32_t most = 0;
  std::vector<double> curve;  // means over the stretches of RunSummary::curve; NaN: not decided
};

// Numbers that cannot be known (no steps, no time) are NaN here, "-" in the text and null in JSON.
struct RunSummary {
  std::string run_file;
  std::string model;  // these five from the settings; empty if they do not say
  std::string data;
  std::string policy;
  std::string scenario;  // of a simulated run
  std::string replayed;  // the trace of a replay, which trains nothing
  RunOutcome outcome = RunOutcome::kRunning;
  std::string reason;   // why, unless completed
  std::string warning;  // why the file may hold more than could be read; usually empty

  uint64_t steps = 0;
  double seconds = 0.0;  // training only; of a run that did not end, up to its last recorded step
  double samples_per_second = 0.0;  // samples behind updates; what came too late does not count
  double steps_per_second = 0.0;
  // Mean training loss of the last `loss_steps` steps, weighted by samples: the last 1 %, at least
  // ten.
  double loss = 0.0;
  uint64_t loss_steps = 0;
  std::optional<EvaluationRecord> evaluation;  // the last one
  uint64_t gradients_used = 0;
  uint64_t gradients_late = 0;
  uint64_t gradients_left_behind = 0;  // that their steps did not wait for, late ones among them
  uint64_t gradients_refused = 0;
  std::vector<OutlierStatistics> outliers;  // who was out of line most often comes first
  uint32_t workers = 0;
  uint32_t shards = 0;
  uint64_t parameters_digest = 0;  // 0: unknown

  StepStatistics step_times;
  WasteStatistics waste;
  WeakStatistics weak;
  std::vector<WorkerStatistics> waited_for;             // most waited for, then slowest, first
  std::vector<EventRecord> lost;                        // workers and others that went away
  std::vector<std::pair<Peer, uint64_t>> memory_bytes;  // peak
  std::vector<CurvePoint> curve;                        // the run in at most 40 stretches
  std::optional<CutoffSummary> cutoff;                  // absent: nothing was decided
};

Result<RunSummary> summarize(const RunReader& reader);

// What a person reads in ten seconds: aligned, with units, 25 lines at most, each ending in '\n'.
std::string to_text(const RunSummary& summary);

// The same for programs: one JSON object in one line, without '\n'. Keys stay; new ones may come.
std::string to_json_line(const RunSummary& summary);

// `values` as a line of block characters, lowest to highest; NaN and infinity are '×'.
std::string sparkline(const std::vector<double>& values);

}  // namespace drover
