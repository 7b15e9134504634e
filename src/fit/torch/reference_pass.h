// The forward pass of a learned model, by the training code, on plain numbers with given noise.
// Tests compare other forward passes with it.
#pragma once

#include <span>
#include <vector>

#include "forecast/learned/history.h"
#include "forecast/learned/model_weights.h"
#include "forecast/learned/worker_features.h"

namespace drover {

// Computes in double. Matrices are stored row by row.
class ReferencePass {
 public:
  // REQUIRES: the weights are complete and outlive this object.
  explicit ReferencePass(const ModelWeights& weights) : weights_(weights) {}

  struct States {
    std::vector<float> last;  // z_T
    std::vector<float> next;  // z_T+1
  };
  // A draw of the state. `v` is steps x inputs, `q_noise` steps x latent, `next_noise` latent. The
  // draws are mean + scale * noise. The number of steps is that of the rows.
  States states(std::span<const float> v, std::span<const float> q_noise,
                std::span<const float> next_noise) const;

  // kShared: v_t, from the features of each worker before the step and the step's run-times. Worker
  // i is views[i]; workers that are unknown to the model have no embedding.
  std::vector<float> pooled(std::span<const WorkerView> views, std::span<const PastTime> row) const;
  // kShared: worker_2's outputs, views x worker_outputs(shape).
  std::vector<float> worker_outputs(std::span<const WorkerView> views) const;

  // kWorkers, kSorted: the distribution of the normalised run-times.
  struct Emitted {
    std::vector<float> mean;
    std::vector<float> scale;
  };
  Emitted emitted(std::span<const float> z) const;

 private:
  const ModelWeights& weights_;
};

}  // namespace drover
