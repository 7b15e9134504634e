// Hunt: short runs under random faults, each a function of its seed, each watched by a Referee.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "sim/simulation.h"

namespace drover {

// A random cluster with random faults.
struct HuntCase {
  SimulationSettings settings;
  std::string policy;
  bool live = false;                              // decided again inside steps
  std::function<double(WorkerId)> steady_speeds;  // seconds of a gradient, where they never change
  std::vector<std::string> story;                 // what it is, in words
};
HuntCase make_hunt_case(uint64_t seed);

struct HuntResult {
  std::string verdict;  // what was wrong; empty: nothing
  RunEnd end;
  Load most;
};
HuntResult run_hunt_case(const HuntCase& hunt);

}  // namespace drover
