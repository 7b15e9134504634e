// SharedEmission: one network for all workers, from what is known of each and the state to samples
// of its run-time; and from what a step has shown of all to what the encoder reads of it. The
// formulas are in model_weights.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "forecast/learned/model_weights.h"
#include "forecast/learned/worker_block.h"

namespace drover {

// What a step has shown of a block's workers.
struct BlockOutcome {
  alignas(64) std::array<float, kBlock> log_time{};   // of who was cut short: imputed
  alignas(64) std::array<float, kBlock> cut_short{};  // 1 or 0
};

class SharedEmission {
 public:
  virtual ~SharedEmission();

  // v of a step: begin, every worker that took part once, end. `block.views` as of before the step.
  virtual void begin_pooling() = 0;
  virtual void pool(const WorkerBlock& block, const BlockOutcome& outcome) = 0;
  virtual void end_pooling(std::span<float> v) = 0;

  // Samples of the run-times of a block's workers. `z`: dimension by dimension, one per sample.
  virtual void sample(const WorkerBlock& block, std::span<const float> z,
                      const SampleTarget& target) = 0;
};

}  // namespace drover
