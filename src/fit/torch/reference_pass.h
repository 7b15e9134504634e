// The forward pass of a learned model by the code that trains it, on plain numbers with the noise
// given: what tests hold other forward passes to.
#pragma once

#include <span>
#include <vector>

#include "forecast/learned/history.h"
#include "forecast/learned/model_weights.h"
#include "forecast/learned/worker_features.h"

namespace drover {

// Computes in double. Rows of numbers lie row by row.
class ReferencePass {
 public:
  // REQUIRES: the weights are whole; they outlive this.
  explicit ReferencePass(const ModelWeights& weights) : weights_(weights) {}

  struct States {
    std::vector<float> last;  // z_T
    std::vector<float> next;  // z_T+1
  };
  // A draw of the state. `v` is steps x inputs, `q_noise` steps x latent, `next_noise` latent; the
  // draws are mean + scale * noise. As many steps as there are rows.
  States states(std::span<const float> v, std::span<const float> q_noise,
                std::span<const float> next_noise) const;

  // kShared: v_t, from what was known of each worker before the step and what the step was. Worker
  // i is views[i]; who is beyond the model's workers has no embedding.
  std::vector<float> pooled(std::span<const WorkerView> views, std::span<const PastTime> row) const;
  // kShared: worker_2's outputs, views x worker_outputs(shape).
  std::vector<float> worker_outputs(std::span<const WorkerView> views) const;

  // kWorkers, kSorted: of the normalised run-times.
  struct Emitted {
    std::vector<float> mean;
    std::vector<float> scale;
  };
  Emitted emitted(std::span<const float> z) const;

 private:
  const ModelWeights& weights_;
};

}  // namespace drover
