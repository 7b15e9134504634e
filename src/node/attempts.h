// run_attempts(): takes part in a run, and joins it again when that ends before the run does.
//
// A member that loses the coordinator or a shard, or is told that the run starts over, throws away
// everything that it knows of it and joins anew: there is one way in, and no state to mend.
#pragma once

#include <functional>
#include <string>

#include "core/time.h"

namespace drover {

// How one of them ended.
struct Attempt {
  int exit_status = 0;
  bool again = false;   // the run may go on
  bool was_in = false;  // it had joined
  std::string why;      // it ended, if it should not have
};

// A number in [0, 1) that is hardly the same in two processes.
double random_fraction();

// `patience`: how long it tries to join again in vain; zero: it tries once, at once. Returns the
// exit status of the last attempt.
int run_attempts(Duration patience, const std::function<Attempt()>& try_once);

}  // namespace drover
