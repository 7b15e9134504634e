// RunSums: a run's steps, added one after the other, in as much memory as a page can show.
//
// A value: it can be copied, so that steps that may still change are added to a copy.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "view/buckets.h"
#include "view/step_facts.h"
#include "view/time_histogram.h"

namespace drover {

inline constexpr size_t kStepBuckets = 1000;
inline constexpr size_t kHeatColumns = 400;
inline constexpr size_t kHeatRows = 256;
inline constexpr size_t kRecentSteps = 64;

// The mean of what is known.
struct Mean {
  double sum = 0.0;
  uint64_t count = 0;
  void add(double value);  // NaN: not known
  void merge(const Mean& other);
  double value() const { return count > 0 ? sum / static_cast<double>(count) : kUnknown; }
};

// A stretch of steps.
struct StepBucket {
  Step first = 0;
  double at_s = 0.0;
  uint64_t steps = 0;  // 0: nothing was added
  double elapsed_min_s = 0.0, elapsed_max_s = 0.0;
  Mean elapsed, cutoff, alive, contributors, oracle, loss, accuracy, samples, learning_rate;
  Mean noise_scale, fresh, computing, moving, waiting, aggregating, deciding;
  uint64_t diverged = 0;  // steps whose loss was not a number
  uint64_t late = 0, refused = 0;
  double saved_s = 0.0, saved_about_s = 0.0;

  void add(const StepFacts& facts);
  void merge(const StepBucket& later);
};

// Which workers are in which row of the heat map.
struct HeatRow {
  WorkerId first = 0;
  WorkerId last = 0;
  uint32_t count = 0;  // fewer than from first to last, if those between are on other nodes
  std::string node;
  bool operator==(const HeatRow&) const = default;
};
struct HeatLayout {
  std::vector<HeatRow> rows;
  std::vector<uint32_t> row_of;  // by worker
  bool operator==(const HeatLayout&) const = default;
};
// One row for each worker, those of a node together; if there are more than kHeatRows, neighbours
// on a node share one. Never more than kHeatRows. `nodes` has a name for each worker.
HeatLayout heat_layout(const std::vector<std::string>& nodes);

struct HeatColumn {
  Step first = 0;
  struct Cell {
    double sum_s = 0.0;
    uint32_t count = 0;
    uint32_t missed = 0;  // not in time
  };
  std::vector<Cell> cells;  // by row; empty: nothing was added
  void merge(const HeatColumn& later);
};

struct WorkerSums {
  uint64_t steps = 0, late = 0, censored = 0, last = 0;
  uint64_t after_miss = 0, missed_again = 0;  // steps after one that it missed, and missed too
  bool missed_before = false;
  TimeHistogram times;   // all of them
  TimeHistogram bounds;  // those of which only a lower bound is known
};

class RunSums {
 public:
  explicit RunSums(const HeatLayout& layout);

  // In order of steps. REQUIRES: every worker has a row in the layout.
  void add(const StepFacts& facts, std::span<const RecordedArrival> arrivals);

  const Buckets<StepBucket>& steps() const { return steps_; }
  const Buckets<HeatColumn>& heat() const { return heat_; }
  const std::vector<WorkerSums>& workers() const { return workers_; }
  const std::deque<StepFacts>& recent() const { return recent_; }      // the last kRecentSteps
  const std::vector<double>& elapsed_s() const { return elapsed_s_; }  // of every step

  uint64_t samples = 0, used = 0, late = 0, refused = 0, censored = 0;
  double waited_s = 0.0, saved_s = 0.0, saved_about_s = 0.0;
  bool saved_foretold = false;  // a forecast is in saved_about_s

 private:
  std::vector<uint32_t> row_of_;
  size_t rows_;
  Buckets<StepBucket> steps_{kStepBuckets};
  Buckets<HeatColumn> heat_{kHeatColumns};
  std::vector<WorkerSums> workers_;
  std::deque<StepFacts> recent_;
  std::vector<double> elapsed_s_;
};

}  // namespace drover
