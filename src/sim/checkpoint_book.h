// CheckpointBook: which checkpoints there are, and from where a run that restarts must continue.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "core/ids.h"
#include "core/run_record.h"
#include "sim/witness.h"

namespace drover {

class CheckpointBook {
 public:
  struct Settings {
    Step steps = 0;
    Step every = 0;              // steps from one checkpoint to the next; 0: there are none
    bool writes_fail = false;    // some of them
    bool recovers = false;       // the run restarts where it must
    uint32_t restarts_most = 0;  // no more are needed
  };
  explicit CheckpointBook(const Settings& settings) : settings_(settings) {}

  // Each of the following returns what is wrong; empty: nothing.

  // The manifest of a checkpoint is written.
  std::string on_checkpoint(Version version);
  // `recorded`: steps so far.
  std::string on_restart(const Restart& restart, Step recorded);
  std::string on_run_over(const RunEnd& end) const;

 private:
  const Settings settings_;
  std::set<Version> there_;  // since the run's last past that has come to be
  uint32_t restarts_ = 0;
};

}  // namespace drover
