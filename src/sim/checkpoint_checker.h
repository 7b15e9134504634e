// CheckpointChecker: tracks which checkpoints exist, and checks that a restarted run continues from
// the right step.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "core/ids.h"
#include "core/run_record.h"
#include "sim/witness.h"

namespace drover {

class CheckpointChecker {
 public:
  struct Settings {
    Step steps = 0;
    Step every = 0;              // steps from one checkpoint to the next; 0: there are none
    bool writes_fail = false;    // the disk fails some writes
    bool recovers = false;       // the run restarts after a loss
    uint32_t restarts_most = 0;  // upper bound on restarts
  };
  explicit CheckpointChecker(const Settings& settings) : settings_(settings) {}

  // Each of the following returns a description of the violation, or an empty string.

  // The manifest of a checkpoint was written.
  std::string on_checkpoint(Version version);
  // `recorded`: number of steps recorded so far.
  std::string on_restart(const Restart& restart, Step recorded);
  std::string on_run_over(const RunEnd& end) const;

 private:
  const Settings settings_;
  std::set<Version> existing_;  // versions with a checkpoint
  uint32_t restarts_ = 0;
};

}  // namespace drover
