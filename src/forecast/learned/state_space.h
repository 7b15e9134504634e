// StateSpace: from what the steps of a window looked like to samples of the state after them. The
// formulas are in model_weights.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "forecast/learned/model_weights.h"

namespace drover {

class StateSpace {
 public:
  virtual ~StateSpace();

  // gru_input v + gru_input_bias, all that the encoder needs of a step: 3 x rnn numbers. Computed
  // once when the step has ended.
  virtual void project(std::span<const float> v, std::span<float> projection) = 0;
  // Makes up for v_i having changed.
  virtual void amend(uint32_t i, float change, std::span<float> projection) const = 0;

  // Draws z of the step after the window. `window` holds projections of at most shape.window steps,
  // oldest first. `uniforms` are the chance in it, in (0, 1): of each step of the window and then
  // of the one after it, of each dimension, one per sample. z comes likewise: dimension by
  // dimension, one number per sample.
  virtual void sample(std::span<const float* const> window, std::span<const float> uniforms,
                      uint32_t samples, std::span<float> z) = 0;
};

}  // namespace drover
