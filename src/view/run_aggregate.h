// RunAggregate: the totals of a run, fed with its steps one after the other. The only place that
// computes them: the summary, the metrics, the report and the page all read them from here.
//
// Its memory depends on the number of workers, not on the length of the run. A value: it can be
// copied, so that steps that may still change are added to a copy. RecordedRun feeds it from a run
// file; docs/dashboard.md says what each number means.
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

// Gradients, and the samples behind updates.
struct GradientTotals {
  uint64_t samples = 0;
  uint64_t used = 0;
  uint64_t late = 0;      // arrived after their step had closed
  uint64_t refused = 0;   // had NaN or infinity
  uint64_t censored = 0;  // not known to have arrived
};

// The part of one worker.
struct WorkerTotals {
  uint64_t steps = 0;     // in which it could take part
  uint64_t late = 0;      // ... and its gradient arrived after the step had closed
  uint64_t censored = 0;  // ... and its gradient is not known to have arrived
  uint64_t last = 0;      // steps that waited for it: it was the last that was in time
  uint64_t after_miss = 0, missed_again = 0;  // steps after one that it missed; of those, missed
  bool missed_before = false;
  TimeHistogram times;   // all run-times
  TimeHistogram bounds;  // those of which only a lower bound is known

  uint64_t missed() const { return late + censored; }  // steps that closed without its gradient
  double inclusion() const;   // share of its steps in which it was in time; NaN without steps
  double recurrence() const;  // of the steps after one that it missed, the share it missed too
  // REQUIRES: steps > 0.
  Duration median_run_time() const { return times.percentile(50); }
  // False: bounds are among the run-times up to the median, so that the true one may be greater.
  bool median_exact() const;
};

struct TimeTotals {
  double waited_s = 0.0;  // in steps
  double saved_s = 0.0;   // vs. synchronous; at least
  double saved_about_s = 0.0;
  bool saved_predicted = false;  // predictions are in saved_about_s
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
  uint64_t undecided_steps = 0;  // that waited for a decision at all
  SecondsHistogram elapsed_counts{kStepBounds};
  SecondsHistogram deciding_counts{kDecidingBounds};

  static constexpr size_t kExact = 16'384;
  static constexpr double kWidth = 0.001;
};

// Cutoffs of the steps that a decision was in force for.
struct CutoffTotals {
  Mean mean;
  uint32_t least = 0, most = 0;
};

// Where workers need not wait for all blocks: how fresh the blocks were that gradients were
// computed on, and how many gradients blocks got.
struct BlockTotals {
  Mean fresh;                  // share of blocks, over the steps
  double fresh_min = 1.0;      // of any gradient used
  uint64_t stale_steps = 0;    // with a gradient on a block that was not fresh
  uint64_t staleness_max = 0;  // steps that a block was behind
  uint64_t uneven_steps = 0;   // in which some blocks got fewer gradients than others
  uint64_t blocks = 0, gradients = 0;
  uint32_t contributors_min = 0, contributors_max = 0;  // gradients of a block in a step
};

struct ComputingTotals {
  Duration used{}, wasted{};  // on gradients that were in time, and on others
  double idle_s = 0.0, all_s = 0.0;
};

// Mean loss and accuracy of the last steps that report them, weighted by samples.
struct RecentLearning {
  uint64_t steps = 0;      // that the means are of, as far as they are known
  double loss = kUnknown;  // NaN also if one of them was not a number
  double accuracy = kUnknown;
};

struct RecentStep {
  Step step = 0;
  double at_s = 0.0, elapsed_s = 0.0;
};

// Values of the newest step; absent: there is none.
struct NewestStep {
  std::optional<double> learning_rate;
  std::optional<double> loss, accuracy;  // of the newest that used a whole gradient
};

class RunAggregate {
 public:
  RunAggregate() = default;
  explicit RunAggregate(const HeatLayout& layout);

  // In order of steps. REQUIRES: every worker has a row in the layout.
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
  // Of the last 1 % of the steps: at least ten, at most a thousand.
  RecentLearning recent_learning() const;

 private:
  // A decision holds until the next one, and so does its forecast.
  struct InForce {
    std::optional<DecisionRecord> decision;  // only its cutoff and number alive
    double last_predicted_s = kUnknown;
    double longest_s = 0.0;  // the longest run-time that was known by then
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
  std::deque<Learned> learned_;  // steps whose loss is known, or not a number
};

}  // namespace drover
