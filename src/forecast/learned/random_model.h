// Models with random weights of realistic size, for tests and benchmarks.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/random_draw.h"
#include "forecast/learned/model_weights.h"

namespace drover {

// Uniform in (-1, 1), never 0.
inline double spread_draw(uint64_t seed, uint64_t at) {
  return 2.0 * unit_interval(draw({seed, at}) | (uint64_t{1} << 11)) - 1.0;
}

// Uniform weights, scaled by the number of inputs as in common initialisations. With `strength` 1,
// outputs are of order 1.
inline ModelWeights random_model(const ModelShape& shape, uint64_t seed, double strength = 1.0) {
  ModelWeights weights{.shape = shape, .note = {}, .tensors = tensors_of(shape)};
  uint64_t at = 0;
  for (Tensor& tensor : weights.tensors) {
    const bool bias = tensor.rows == 1;
    const double size = strength * (bias ? 0.3 : std::sqrt(3.0 / tensor.columns));
    for (size_t i = 0; i < size_t{tensor.rows} * tensor.columns; ++i) {
      tensor.values.push_back(static_cast<float>(size * spread_draw(seed, ++at)));
    }
    if (tensor.name == "normal_scale") tensor.values = {0.4F};
  }
  return weights;
}

}  // namespace drover
