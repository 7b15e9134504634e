// StateSpace: samples of the latent state after the steps of a window. The formulas are in
// model_weights.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "forecast/learned/model_weights.h"

namespace drover {

class StateSpace {
 public:
  virtual ~StateSpace();

  // Computes gru_input v + gru_input_bias, the encoder's input from a step: 3 x rnn numbers. Called
  // once when the step has ended.
  virtual void project(std::span<const float> v, std::span<float> projection) = 0;
  // Updates a projection after a change of v_i.
  virtual void amend(uint32_t i, float change, std::span<float> projection) const = 0;

  // Draws z of the step after the window. `window` has the projections of at most shape.window
  // steps, oldest first. `uniforms` are random numbers in (0, 1), ordered by step (those of the
  // window, then the one after it), then by dimension, then by sample. `z` is ordered by dimension,
  // then by sample.
  virtual void sample(std::span<const float* const> window, std::span<const float> uniforms,
                      uint32_t samples, std::span<float> z) = 0;
};

}  // namespace drover
