#include "forecast/learned/model_weights.h"

#include <algorithm>

#include "core/check.h"
#include "forecast/learned/worker_features.h"

namespace drover {
namespace {

void add(std::vector<Tensor>& tensors, std::string name, uint32_t rows, uint32_t columns) {
  tensors.push_back({std::move(name), rows, columns, {}});
}

// Weights and bias of a layer.
void add_layer(std::vector<Tensor>& tensors, const std::string& name, uint32_t outputs,
               uint32_t inputs) {
  add(tensors, name, outputs, inputs);
  add(tensors, name + "_bias", 1, outputs);
}

}  // namespace

uint32_t outputs_per_component() { return 1 + kAnchorCount + 2; }

uint32_t worker_outputs(const ModelShape& shape) {
  return shape.components * outputs_per_component() + shape.latent;
}

std::vector<Tensor> tensors_of(const ModelShape& shape) {
  const bool shared = shape.emission == Emission::kShared;
  std::vector<Tensor> tensors;
  add(tensors, "start", 1, shape.latent);
  add_layer(tensors, "gru_input", 3 * shape.rnn, shared ? shape.pooled : shape.workers);
  add_layer(tensors, "gru_hidden", 3 * shape.rnn, shape.rnn);
  add_layer(tensors, "combine", shape.rnn, shape.latent);
  add_layer(tensors, "q_mean", shape.latent, shape.rnn);
  add_layer(tensors, "q_scale", shape.latent, shape.rnn);
  add_layer(tensors, "gate_1", shape.transition, shape.latent);
  add_layer(tensors, "gate_2", shape.latent, shape.transition);
  add_layer(tensors, "prop_1", shape.transition, shape.latent);
  add_layer(tensors, "prop_2", shape.latent, shape.transition);
  add_layer(tensors, "stay", shape.latent, shape.latent);
  add_layer(tensors, "drift", shape.latent, shape.latent);
  if (shared) {
    const uint32_t inputs = kFeatureCount + shape.embedding;
    add(tensors, "embedding", shape.workers, shape.embedding);
    add_layer(tensors, "pool_1", shape.pooled_hidden, inputs + 2);
    add_layer(tensors, "pool_2", shape.pooled, shape.pooled_hidden);
    add_layer(tensors, "worker_1", shape.worker_hidden, inputs);
    add_layer(tensors, "worker_2", worker_outputs(shape), shape.worker_hidden);
  } else {
    add(tensors, "normal_mean", 1, shape.workers);
    add(tensors, "normal_scale", 1, 1);
    add_layer(tensors, "emit", shape.emission_hidden, shape.latent);
    add_layer(tensors, "emit_mean", shape.workers, shape.emission_hidden);
    add_layer(tensors, "emit_scale", shape.workers, shape.emission_hidden);
  }
  return tensors;
}

const Tensor& ModelWeights::tensor(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const Tensor& each) { return each.name == name; });
  DROVER_CHECK(found != tensors.end());
  return *found;
}

}  // namespace drover
