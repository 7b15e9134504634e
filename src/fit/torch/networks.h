// The networks of a learned model in libtorch; forecast/learned/model_weights.h has the formulas.
//
// All weights are in one flat tensor, in the order of tensors_of(shape), so that the optimiser
// updates a single tensor. It may be float or double.
#pragma once

#include <ATen/ATen.h>

#include "forecast/learned/model_weights.h"

namespace drover {

struct Linear {
  at::Tensor weight;  // outputs x inputs
  at::Tensor bias;    // 1 x outputs

  // Applies the layer to each row. REQUIRES: x has two dimensions.
  at::Tensor operator()(const at::Tensor& x) const { return at::addmm(bias, x, weight.t()); }
};

struct Normal {
  at::Tensor mean;
  at::Tensor scale;
};

// Views into a flat tensor.
struct Network {
  Network(const ModelShape& shape, const at::Tensor& flat);

  ModelShape shape;
  at::Tensor start;  // 1 x d
  Linear gru_input, gru_hidden, combine, q_mean, q_scale;
  Linear gate_1, gate_2, prop_1, prop_2, stay, drift;
  // kShared
  at::Tensor embedding;
  Linear pool_1, pool_2, worker_1, worker_2;
  // kWorkers, kSorted
  Linear emit, emit_mean, emit_scale;
};

// Conversions between a model's weights and a flat tensor.
at::Tensor flat_of(const ModelWeights& weights);
ModelWeights weights_of(const ModelShape& shape, const at::Tensor& flat);

// The start of a fit: the state is constant, weights are small, and run-times are near their
// anchors.
ModelWeights initial_weights(const ModelShape& shape, uint64_t seed);
// `start`, fitted for another number of workers, with new workers as in `fresh` (embeddings 0).
// REQUIRES: the shapes are equal except for `workers`.
ModelWeights grown(const ModelWeights& start, const ModelWeights& fresh);

// g_t of a window: v is window x rows x inputs, the result window x rows x rnn.
at::Tensor encode(const Network& network, const at::Tensor& v);

// One draw of z_1..z_T from the proposal and the distributions it was drawn from, each window x
// rows x latent.
struct Proposal {
  Normal q;
  at::Tensor z;
};
Proposal propose(const Network& network, const at::Tensor& g, const at::Tensor& noise);

// p(z_t+1 | z_t) for each row.
Normal transition(const Network& network, const at::Tensor& z);

// kShared. `inputs` is groups x workers x (features, surprise, cut short); `embedding` is workers
// x e.
// v of each group: the mean over the workers that took part (1 or 0, groups x workers).
at::Tensor pool(const Network& network, const at::Tensor& inputs, const at::Tensor& embedding,
                const at::Tensor& took_part);
// worker_2's outputs, outputs x groups x workers. Workers are innermost, because all further
// computations run over them.
at::Tensor describe_workers(const Network& network, const at::Tensor& inputs,
                            const at::Tensor& embedding);

// kWorkers, kSorted: for each row of z; rows x workers.
Normal emit_all(const Network& network, const at::Tensor& z);

}  // namespace drover
