// HuntCase: a random cluster with random faults and a job for it, as a function of a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/simulation.h"

namespace drover {

struct HuntCase {
  // Of every run without a schedule of its own.
  static constexpr double kLearningRate = 0.1;
  static constexpr uint32_t kShardsMost = 4;

  SimulationSettings settings;
  std::string policy;
  bool live = false;                              // decided again inside steps
  std::function<double(WorkerId)> steady_speeds;  // seconds of a gradient, where they never change
  std::vector<std::string> story;                 // what it is, in words
};
HuntCase make_hunt_case(uint64_t seed);

}  // namespace drover
