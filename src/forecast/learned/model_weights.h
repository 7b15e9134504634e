// ModelWeights: the tensors of a learned model, by name. Fitting writes them; the forward pass and
// the model file read them.
//
// Formulas (W x + b: `name` is W, one row per output; `name_bias` is b; d = latent, R = rnn):
//
// Encoder: g_t for the steps t = T .. T-window+1, read backwards from h = 0 with a GRU:
//   [r u n]_x = gru_input v_t + gru_input_bias,  [r u n]_h = gru_hidden h + gru_hidden_bias
//   r = sigmoid(r_x + r_h), u = sigmoid(u_x + u_h), n = tanh(n_x + r * n_h), h' = (1 - u) n + u h
//   g_t = h'.  v_t represents the step; see the emissions.
// Proposal: c = (tanh(combine z_t-1 + combine_bias) + g_t) / 2
//   q(z_t | z_t-1, x) = N(q_mean c + q_mean_bias, softplus(q_scale c + q_scale_bias) + 0.001);
//   before the first step of the window, z = `start`.
// Transition: gate = sigmoid(gate_2 relu(gate_1 z + gate_1_bias) + gate_2_bias)
//   prop = prop_2 relu(prop_1 z + prop_1_bias) + prop_2_bias
//   p(z_t+1 | z_t) = N((1 - gate) (stay z + stay_bias) + gate prop,
//                      softplus(drift relu(prop) + drift_bias) + 0.001)
//
// Emission kWorkers, kSorted: v_t = (log times - normal_mean) / normal_scale. By worker: 0 for a
//   worker that took no part. Sorted: the run-times of the workers that took part, stretched to
//   `workers` numbers by relative rank (relative_ranks.h); 0 if there are none.
//   hidden = relu(emit z + emit_bias),
//   log time_i ~ N(mean_i, scale_i) * normal_scale + normal_mean_i with
//   mean = emit_mean hidden + emit_mean_bias, scale = softplus(emit_scale hidden + ..._bias) +
//   0.001
//
// Emission kShared: worker i is described by features f_i, anchors a_i (log times) and a scale s_i
//   (worker_features.h) and its embedding e_i = row i of `embedding` (0 for an unknown worker).
//   w = worker_2 relu(worker_1 [f_i e_i] + worker_1_bias) + worker_2_bias, which holds
//   per component c: logit, a weight logit for each anchor, offset, log scale; then d loadings.
//   log time_i ~ sum_c softmax(logit)_c N( softmax(anchor logits)_c . a_i + s_i (offset_c +
//   loadings . z), s_i exp(clamp(log scale_c, -5, 5)) ) v_t = pool_2 mean_i relu(pool_1 [f_i e_i
//   surprise_i cut_short_i] + pool_1_bias) + pool_2_bias over the workers that took part, with f_i
//   as of before step t, surprise_i = squash((y_i - a_i[kMidAnchor]) / s_i), cut_short_i = 1 if the
//   run-time is censored (then y_i is imputed), else 0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "forecast/learned/model_shape.h"

namespace drover {

struct Tensor {
  std::string name;
  uint32_t rows = 0;
  uint32_t columns = 0;
  std::vector<float> values;  // row by row

  bool operator==(const Tensor&) const = default;
};

// Metadata of the fit that made a model.
struct FitNote {
  uint64_t seed = 0;
  uint64_t steps = 0;            // in the data of the fit
  double held_out_elbo = 0.0;    // per run-time
  double cut_short_share = 0.0;  // share of censored run-times in the data of the fit

  bool operator==(const FitNote&) const = default;
};

struct ModelWeights {
  ModelShape shape;
  FitNote note;
  std::vector<Tensor> tensors;  // those of tensors_of(shape), in that order

  // REQUIRES: there is a tensor of that name.
  const Tensor& tensor(std::string_view name) const;
  bool operator==(const ModelWeights&) const = default;
};

// Names and sizes of the tensors of a model with this shape, without values.
std::vector<Tensor> tensors_of(const ModelShape& shape);

// The layout of the output of worker_2, see above.
uint32_t outputs_per_component();
uint32_t worker_outputs(const ModelShape& shape);

}  // namespace drover
