// RunAggregate: the totals of a run. Summary, metrics, report and dashboard all take them from
// here.
//
// Steps are added in order. The memory depends on the number of workers, not of steps. It is a
// value: steps that may still change are added to a copy. RecordedRun feeds it from a run file.
// docs/dashboard.md defines each number.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/run_record.h"
#include "view/buckets.h"
#include "view/heat_map.h"
#include "view/run_walk.h"
#include "view/step_facts.h"
#include "view/step_series.h"
#include "view/time_histogram.h"

namespace drover {

inline constexpr size_t kRecentSteps = 64;
inline constexpr std::array kStepBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                           0.5,   1.0,    2.5,   5.0,  10.0,  25.0, 60.0};
inline constexpr std::array kDecidingBounds = {0.0001, 0.0005, 0.001, 0.005, 0.01,
                                               0.05,   0.1,    0.5,   1.0};

// Numbers of gradients, and of samples used in updates.
struct GradientTotals {
  uint64_t samples = 0;
  uint64_t used = 0;
  uint64_t late = 0;      // arrived after their step had closed
  uint64_t refused = 0;   // contained NaN or infinity
  uint64_t censored = 0;  // no arrival is recorded
};

// The totals of a worker.
struct WorkerTotals {
  uint64_t steps = 0;     // steps in which it could take part
  uint64_t late = 0;      // of these, its gradient arrived after the step had closed
  uint64_t censored = 0;  // of these, no arrival of its gradient is recorded
  uint64_t last = 0;      // steps in which it was the last one in time
  uint64_t after_miss = 0, missed_again = 0;  // steps after one it missed; of these, missed
  bool missed_before = false;
  TimeHistogram times;   // all run-times
  TimeHistogram bounds;  // the run-times of which only a lower bound is known

  uint64_t missed() const { return late + censored; }  // steps that closed without its gradient
  double inclusion() const;   // share of its steps in which it was in time; NaN without steps
  double recurrence() const;  // repeat-straggler rate: missed_again / after_miss
  // REQUIRES: steps > 0.
  Duration median_run_time() const { return times.percentile(50); }
  // False if run-times up to the median include lower bounds, so that the true median may be
  // larger.
  bool median_exact() const;
};

struct TimeTotals {
  double waited_s = 0.0;         // total duration of steps
  double saved_s = 0.0;          // time saved vs. synchronous: a lower bound
  double saved_about_s = 0.0;    // the same, estimated with forecasts
  bool saved_predicted = false;  // saved_about_s contains forecasts
  double aggregate_s = 0.0;
  Duration first_start{};  // of the first step
  Duration last_end{};     // of the last step
};

struct StepTimeTotals {
  uint64_t steps = 0;
  TimeHistogram elapsed{kExact, kWidth};
  TimeHistogram overhead{kExact, kWidth};  // of steps whose computing time is known
  TimeHistogram closing{kExact, kWidth};
  Duration undecided_max{};
  uint64_t undecided_steps = 0;  // steps that waited for a decision
  SecondsHistogram elapsed_counts{kStepBounds};
  SecondsHistogram deciding_counts{kDecidingBounds};

  static constexpr size_t kExact = 16'384;
  static constexpr double kWidth = 0.001;
};

// Cutoffs of steps with a decision in force.
struct CutoffTotals {
  Mean mean;
  uint32_t least = 0, most = 0;
};

// Partial pulls and pushes: the freshness of the blocks on which gradients were computed, and the
// number of gradients per block.
struct BlockTotals {
  Mean fresh;                  // share of fresh blocks, mean over steps
  double fresh_min = 1.0;      // lowest share of any used gradient
  uint64_t stale_steps = 0;    // steps with a gradient on a stale block
  uint64_t staleness_max = 0;  // largest staleness of a block, in steps
  uint64_t uneven_steps = 0;   // steps in which blocks got different numbers of gradients
  uint64_t blocks = 0, gradients = 0;
  uint32_t contributors_min = 0, contributors_max = 0;  // gradients of a block in a step
};

struct ComputingTotals {
  Duration used{}, wasted{};         // on gradients in time, and on others
  double idle_s = 0.0, all_s = 0.0;  // workers' idle time, of their total time
};

// Mean loss and accuracy of the last steps that report them, weighted by samples.
struct RecentLearning {
  uint64_t steps = 0;      // over which the means are taken
  double loss = kUnknown;  // also NaN if the loss of one of the steps is NaN
  double accuracy = kUnknown;
};

struct RecentStep {
  Step step = 0;
  double at_s = 0.0, elapsed_s = 0.0;
};

// Values of the newest step; absent without steps.
struct NewestStep {
  std::optional<double> learning_rate;
  std::optional<double> loss, accuracy;  // of the newest step that used a whole gradient
};

class RunAggregate {
 public:
  RunAggregate() = default;
  explicit RunAggregate(const HeatLayout& layout);

  // REQUIRES: steps are added in order; every worker has a row in the layout.
  void add(const WalkedStep& step);

  uint64_t step_count() const { return step_times_.steps; }
  const GradientTotals& gradients() const { return gradients_; }
  const TimeTotals& time() const { return time_; }
  const StepTimeTotals& step_times() const { return step_times_; }
  const CutoffTotals& cutoff() const { return cutoff_; }
  const BlockTotals& blocks() const { return blocks_; }
  const ComputingTotals& computing() const { return computing_; }
  const NewestStep& newest() const { return newest_; }
  const std::vector<WorkerTotals>& workers() const { return workers_; }
  const Buckets<StepBucket>& steps() const { return steps_; }
  const Buckets<HeatColumn>& heat() const { return heat_; }
  const std::deque<RecentStep>& recent() const { return recent_; }  // the last kRecentSteps
  // Over the last 1 % of the steps: at least ten, at most a thousand.
  RecentLearning recent_learning() const;

 private:
  // A decision and its forecast remain in force until the next decision.
  struct InForce {
    std::optional<DecisionRecord> decision;  // only its fields cutoff and alive
    double last_predicted_s = kUnknown;
    double longest_s = 0.0;  // the longest run-time so far
  };
  struct Learned {
    double loss = kUnknown, accuracy = kUnknown;
    uint64_t samples = 0;
  };
  StepFacts facts_of_next(const WalkedStep& step);
  void add_record(const StepRecord& record, const StepFacts& facts);
  void add_blocks(const StepRecord& record);
  void add_arrivals(const WalkedStep& step);

  std::vector<uint32_t> row_of_;
  size_t rows_ = 0;
  InForce in_force_;
  GradientTotals gradients_;
  TimeTotals time_;
  StepTimeTotals step_times_;
  CutoffTotals cutoff_;
  BlockTotals blocks_;
  ComputingTotals computing_;
  NewestStep newest_;
  std::vector<WorkerTotals> workers_;
  Buckets<StepBucket> steps_{kStepBuckets};
  Buckets<HeatColumn> heat_{kHeatColumns};
  std::deque<RecentStep> recent_;
  std::deque<Learned> learned_;  // steps whose loss is known or NaN
};

}  // namespace drover
