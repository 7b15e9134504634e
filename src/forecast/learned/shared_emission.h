// SharedEmission: one network for all workers. It computes samples of a worker's run-time from the
// worker's features and the state, and the encoder's input from a step's run-times. The formulas
// are in model_weights.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "forecast/learned/model_weights.h"
#include "forecast/learned/worker_block.h"

namespace drover {

// The run-times of a block's workers in a step.
struct BlockOutcome {
  alignas(64) std::array<float, kBlock> log_time{};   // imputed if censored
  alignas(64) std::array<float, kBlock> cut_short{};  // 1 if censored, else 0
};

class SharedEmission {
 public:
  virtual ~SharedEmission();

  // Computes v of a step: begin_pooling(), pool() with each worker that took part once, and
  // end_pooling(). `block.views` are as of before the step.
  virtual void begin_pooling() = 0;
  virtual void pool(const WorkerBlock& block, const BlockOutcome& outcome) = 0;
  virtual void end_pooling(std::span<float> v) = 0;

  // Samples of the run-times of a block's workers. `z` has the values of all samples for the first
  // dimension, then for the second, and so on.
  virtual void sample(const WorkerBlock& block, std::span<const float> z,
                      const SampleTarget& target) = 0;
};

}  // namespace drover
