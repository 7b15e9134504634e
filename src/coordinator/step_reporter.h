// StepReporter: turns the summaries of steps into records and events, and detects that a run has
// diverged.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "coordinator/block_map.h"
#include "coordinator/run_records.h"
#include "coordinator/step_summary.h"
#include "core/ids.h"
#include "core/time.h"
#include "core/training.h"

namespace drover {

class StepReporter {
 public:
  // A run has diverged if no gradient was usable for this many steps in a row.
  static constexpr uint32_t kEmptyStepsMax = 3;

  struct Settings {
    uint64_t full_samples = 0;  // samples of a step to which all workers contribute
    bool asynchronous = false;  // each gradient of a step is a separate update
    bool partial_pull = false;  // workers may begin a step without some blocks
  };
  explicit StepReporter(const Settings& settings) : settings_(settings) {}

  // Appends the record of each step, and events about refused gradients and outliers. `now`: the
  // time since the run began. REQUIRES: steps come in order, each once.
  void report(std::vector<StepSummary> summaries, const BlockMap& blocks, RateRule rule,
              Duration now, std::vector<RunRecord>& out);
  // Whether there have ever been kEmptyStepsMax empty steps in a row.
  bool diverged() const { return diverged_; }

 private:
  double rate_factor_of(const StepSummary& summary, RateRule rule) const;
  bool is_empty(const StepRecord& step) const;
  void report_outliers(const StepSummary& summary, const BlockMap& blocks, Duration now,
                       std::vector<RunRecord>& out);

  const Settings settings_;
  uint32_t empty_steps_ = 0;  // in a row
  bool diverged_ = false;
  std::map<WorkerId, uint64_t> outliers_;  // the number of steps with a norm that was too large
};

}  // namespace drover
