// PublishedEmission: an output for every worker, or every place in the order of arrival, from the
// state to samples of its run-time. The formulas are in model_weights.h.
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

  // To be called before sample(), once for a forecast. `z`: dimension by dimension, one per sample.
  virtual void set_state(std::span<const float> z, uint32_t samples) = 0;
  // Samples of a block's run-times; `block.ids` name the outputs. REQUIRES: all are below
  // shape.workers; target.samples as in set_state().
  virtual void sample(const WorkerBlock& block, const SampleTarget& target) = 0;
};

}  // namespace drover
