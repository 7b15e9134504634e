// MetricsReader: what monitoring wants to know of a run, kept up to date from its file.
//
// Reading costs in proportion to what is new, and never disturbs the run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/run_record.h"
#include "store/run_reader.h"
#include "view/export/run_walk.h"

namespace drover {

// Counts by upper bounds, in seconds.
struct SecondsHistogram {
  explicit SecondsHistogram(std::span<const double> bounds)
      : upper_bounds(bounds), counts(bounds.size() + 1) {}
  void add(double seconds);

  std::span<const double> upper_bounds;  // ascending; must outlive this
  std::vector<uint64_t> counts;          // of each stretch alone; the last is above all bounds
  double sum = 0.0;
};

struct WorkerCounts {
  uint64_t steps = 0;  // that it could take part in
  uint64_t late = 0;   // of those, in which its gradient was not there in time
  uint64_t last = 0;   // steps for which it was the one waited for
};

// Totals count what was read so far; absent: not known yet.
struct RunMetrics {
  RunMetrics();

  std::string run_id;
  std::string policy;
  std::string model;
  std::string data;
  RunOutcome outcome = RunOutcome::kRunning;
  std::optional<uint64_t> steps_planned;

  uint64_t steps = 0;
  uint64_t samples = 0;
  uint64_t used = 0;  // gradients
  uint64_t late = 0;
  uint64_t refused = 0;
  uint64_t lost = 0;  // times that a worker was
  SecondsHistogram step_seconds;
  SecondsHistogram deciding_seconds;  // that a step could have closed, had it been decided
  double aggregate_seconds = 0.0;
  // Against waiting for everybody; at least so much, where only bounds are known of some.
  double saved_seconds = 0.0;

  std::optional<uint32_t> cutoff;  // of the newest decision
  std::optional<uint32_t> alive;
  bool model_stale = false;  // as of that decision

  std::optional<double> loss;  // of the newest step that has one, NaN if that is what it was
  std::optional<double> accuracy;
  std::optional<double> learning_rate;
  std::optional<double> test_loss;  // of the newest evaluation
  std::optional<double> test_accuracy;

  std::map<WorkerId, WorkerCounts> workers;
};

class MetricsReader {
 public:
  // The reader must outlive this.
  explicit MetricsReader(const RunReader& reader) : reader_(reader) {}

  // Takes in what was recorded since the last time.
  Status read_new();

  const RunMetrics& metrics() const { return metrics_; }

 private:
  Status read_header();
  Status read_steps();
  Status read_saved();
  Status read_decisions();
  Status read_news();
  void take(const WalkedStep& walked);

  const RunReader& reader_;
  RunMetrics metrics_;
  bool header_read_ = false;
  Step next_ = 0;        // the first step that is not counted yet
  Step next_saved_ = 0;  // likewise of saved_seconds
};

}  // namespace drover
