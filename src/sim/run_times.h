// RunTimes: how long each simulated worker computes in each step. A function of the seed, the step
// and the worker only: the order of calls does not matter.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/scenario.h"

namespace drover {

class RunTimes {
 public:
  // REQUIRES: the scenario outlives this object.
  RunTimes(const Scenario& scenario, uint32_t workers, uint64_t seed);

  // In seconds, positive.
  double seconds(Step step, WorkerId worker);

 private:
  // One chain of a Regime: of a worker, or of a node.
  struct Chain {
    std::vector<bool> slow;  // by step, as far as needed so far
  };

  double base(const RunTimeLaw& law, Step step, WorkerId worker) const;
  bool is_slow(size_t regime, Step step, WorkerId worker);
  uint64_t draw_bits(uint64_t use, uint64_t which, Step step, uint64_t index) const;
  double uniform(uint64_t use, uint64_t which, Step step, uint64_t index) const;
  double normal(uint64_t use, uint64_t which, Step step, uint64_t index) const;

  const Scenario& scenario_;
  const uint64_t seed_;
  std::vector<uint32_t> law_of_;            // by worker: index in scenario.run_times; ~0: default
  std::vector<std::vector<Chain>> chains_;  // by regime, then by worker or node
  std::vector<double> trace_median_;        // by rule: replaces times that were not recorded
};

}  // namespace drover
