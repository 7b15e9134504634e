// PublishedEmission: samples of run-times from the state, with one output per worker or per rank of
// arrival. The formulas are in model_weights.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "forecast/learned/model_weights.h"
#include "forecast/learned/worker_block.h"

namespace drover {

class PublishedEmission {
 public:
  virtual ~PublishedEmission();

  // Sets the state for the sample() calls of a forecast. `z` has the values of all samples for the
  // first dimension, then for the second, and so on.
  virtual void set_state(std::span<const float> z, uint32_t samples) = 0;
  // Samples of a block's run-times; `block.ids` are the outputs. REQUIRES: all ids are below
  // shape.workers; target.samples is as in set_state().
  virtual void sample(const WorkerBlock& block, const SampleTarget& target) = 0;
};

}  // namespace drover
