// StepReporter: turns the summaries of steps into records and events, and notices when a run has
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
  // A run without a single usable gradient for so many steps in a row has diverged.
  static constexpr uint32_t kEmptyStepsMax = 3;

  struct Settings {
    uint64_t full_samples = 0;  // of a step to which all workers contribute
    bool free_running = false;  // a step is a round of gradients that were used one by one
    bool partial_pull = false;  // workers do not wait for all blocks
  };
  explicit StepReporter(const Settings& settings) : settings_(settings) {}

  // Appends the record of each step and what was out of order in it. `now`: since the run began.
  // REQUIRES: steps come in order, each once.
  void report(std::vector<StepSummary> summaries, const BlockMap& blocks, RateRule rule,
              Duration now, std::vector<RunRecord>& out);
  // Whether there were kEmptyStepsMax empty steps in a row, ever.
  bool diverged() const { return diverged_; }

 private:
  double rate_factor_of(const StepSummary& summary, RateRule rule) const;
  bool is_empty(const StepRecord& step) const;
  void report_outliers(const StepSummary& summary, const BlockMap& blocks, Duration now,
                       std::vector<RunRecord>& out);

  const Settings settings_;
  uint32_t empty_steps_ = 0;  // in a row
  bool diverged_ = false;
  std::map<WorkerId, uint64_t> outliers_;  // steps in which the norm of its gradient was too large
};

}  // namespace drover
