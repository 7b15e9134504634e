// Hunt: short runs under random faults, each a function of its seed, each watched by a Referee.
#pragma once

#include <string>

#include "sim/hunt_case.h"
#include "sim/witness.h"

namespace drover {

struct HuntResult {
  std::string verdict;  // what was wrong; empty: nothing
  RunEnd end;
  Load most;
};
// Where the case's parameters may depend on nothing but the gradients it is run again, in another
// order and without interruptions, and must come to the same.
HuntResult run_hunt_case(const HuntCase& hunt);

}  // namespace drover
