// HuntCase: a random cluster with random faults and a job for it, as a function of a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/simulation.h"

namespace drover {

struct HuntCase {
  // The learning rate, unless scripts set their own.
  static constexpr double kLearningRate = 0.1;
  static constexpr uint32_t kShardsMost = 4;

  SimulationSettings settings;
  std::string policy;
  bool live = false;                              // decisions are revised within steps
  std::function<double(WorkerId)> steady_speeds;  // seconds per gradient, where constant
  std::vector<std::string> description;           // a description for people
};
HuntCase make_hunt_case(uint64_t seed);

}  // namespace drover
