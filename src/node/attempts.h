// run_attempts(): takes part in a run, and rejoins it when an attempt ends before the run does.
//
// A member that loses the coordinator or a shard, or is notified that the run restarts, discards
// all state of the run and joins again. So there is one way to join, and no state to repair.
#pragma once

#include <functional>
#include <string>

#include "core/time.h"

namespace drover {

// How one attempt ended.
struct Attempt {
  int exit_status = 0;
  bool again = false;   // the run may continue: try again
  bool joined = false;  // the attempt had joined the run
  std::string why;      // the reason of a failure; empty: there was none
};

// A number in [0, 1) that differs between processes and calls.
double random_fraction();

// `patience`: for how long failed attempts to rejoin are repeated; zero: one retry, without a wait.
// Returns the exit status of the last attempt.
int run_attempts(Duration patience, const std::function<Attempt()>& try_once);

}  // namespace drover
