// Hunt: short simulated runs under random faults. Each run is a function of its seed, and is
// checked by a Referee.
#pragma once

#include <string>

#include "sim/hunt_case.h"
#include "sim/witness.h"

namespace drover {

struct HuntResult {
  std::string verdict;  // the first violation; empty: none
  RunEnd end;
  Load most;
};
// Runs the case. If its final parameters must not depend on the order of messages, runs it a second
// time with another order and without interruptions, and compares the parameters.
HuntResult run_hunt_case(const HuntCase& hunt);

}  // namespace drover
