#include "fit/torch/reference_pass.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "fit/torch/networks.h"

namespace drover {
namespace {

at::Tensor to_tensor(std::span<const float> values, at::IntArrayRef sizes) {
  // libtorch has no tensors of const floats, so this copies.
  return at::from_blob(const_cast<float*>(values.data()), sizes, at::kFloat).to(at::kDouble);
}

std::vector<float> to_vector(const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kFloat).contiguous();
  return {values.data_ptr<float>(), values.data_ptr<float>() + values.numel()};
}

Network network_of(const ModelWeights& weights) {
  return {weights.shape, flat_of(weights).to(at::kDouble)};
}

// One group of all workers. `row` may be empty if the step's run-times are not needed.
at::Tensor inputs_of(std::span<const WorkerView> views, std::span<const PastTime> row) {
  std::vector<float> inputs;
  for (size_t i = 0; i < views.size(); ++i) {
    inputs.insert(inputs.end(), views[i].features.begin(), views[i].features.end());
    const bool known = i < row.size() && row[i].known != Known::kNothing;
    inputs.push_back(
        known ? squash((row[i].log_time - views[i].anchors[kMidAnchor]) / views[i].scale) : 0.0F);
    inputs.push_back(known && row[i].known == Known::kLonger ? 1.0F : 0.0F);
  }
  return to_tensor(inputs, {1, static_cast<int64_t>(views.size()), kFeatureCount + 2});
}

at::Tensor embeddings(const Network& network, size_t workers) {
  const auto wanted = static_cast<int64_t>(workers);
  const at::Tensor known =
      network.embedding.narrow(0, 0, std::min(wanted, network.embedding.size(0)));
  const at::Tensor unknown = at::zeros({wanted - known.size(0), known.size(1)}, known.options());
  return at::cat({known, unknown});
}

}  // namespace

ReferencePass::States ReferencePass::states(std::span<const float> v,
                                            std::span<const float> q_noise,
                                            std::span<const float> next_noise) const {
  const at::NoGradGuard no_gradient;
  const Network network = network_of(weights_);
  const int64_t latent = weights_.shape.latent;
  const int64_t steps = static_cast<int64_t>(q_noise.size()) / latent;
  const at::Tensor g = encode(network, to_tensor(v, {steps, 1, network.gru_input.weight.size(1)}));
  const at::Tensor z =
      propose(network, g, to_tensor(q_noise, {steps, 1, latent})).z.select(0, steps - 1);
  const Normal next = transition(network, z);
  return {to_vector(z), to_vector(next.mean + next.scale * to_tensor(next_noise, {1, latent}))};
}

std::vector<float> ReferencePass::pooled(std::span<const WorkerView> views,
                                         std::span<const PastTime> row) const {
  const at::NoGradGuard no_gradient;
  const Network network = network_of(weights_);
  std::vector<float> took_part;
  for (const PastTime& time : row) {
    took_part.push_back(time.known == Known::kNothing ? 0.0F : 1.0F);
  }
  return to_vector(pool(network, inputs_of(views, row), embeddings(network, views.size()),
                        to_tensor(took_part, {1, static_cast<int64_t>(row.size())})));
}

std::vector<float> ReferencePass::worker_outputs(std::span<const WorkerView> views) const {
  const at::NoGradGuard no_gradient;
  const Network network = network_of(weights_);
  return to_vector(
      describe_workers(network, inputs_of(views, {}), embeddings(network, views.size()))
          .squeeze(1)
          .t());
}

ReferencePass::Emitted ReferencePass::emitted(std::span<const float> z) const {
  const at::NoGradGuard no_gradient;
  const Normal normal = emit_all(network_of(weights_), to_tensor(z, {1, weights_.shape.latent}));
  return {to_vector(normal.mean), to_vector(normal.scale)};
}

}  // namespace drover
