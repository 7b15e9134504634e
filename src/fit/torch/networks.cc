#include "fit/torch/networks.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/check.h"
#include "forecast/learned/worker_features.h"

namespace drover {
namespace {

constexpr double kLeastDeviation = 0.001;

at::Tensor deviation(const at::Tensor& x) { return at::softplus(x) + kLeastDeviation; }

// Returns x with softplus(x) = y.
float inverse_softplus(double y) { return static_cast<float>(std::log(std::expm1(y))); }

int64_t signed_size(size_t size) { return static_cast<int64_t>(size); }

// Initial components of the mixture: the typical run-time, a wider one, a wide tail.
struct Beginning {
  float logit;
  Anchor near, far;
  float log_scale;
};

Beginning beginning_of(uint32_t component) {
  if (component == 0) return {1.5F, kFastAnchor, kMidAnchor, 0.0F};
  if (component == 1) return {0.0F, kMidAnchor, kSlowAnchor, 0.7F};
  return {-1.5F, kSlowAnchor, kCenterAnchor, 2.0F};
}

void set_bias(const ModelShape& shape, Tensor& bias) {
  const auto fill = [&](float value) { std::fill(bias.values.begin(), bias.values.end(), value); };
  // Both scales start at 0.3: the state moves slowly compared with its range of about 1.
  if (bias.name == "q_scale_bias" || bias.name == "drift_bias") fill(inverse_softplus(0.3));
  if (bias.name == "gate_2_bias") fill(-1.0F);
  if (bias.name == "emit_scale_bias") fill(inverse_softplus(0.8));
  if (bias.name != "worker_2_bias") return;
  for (uint32_t c = 0; c < shape.components; ++c) {
    float* const outputs = &bias.values[size_t{c} * outputs_per_component()];
    const Beginning beginning = beginning_of(c);
    outputs[0] = beginning.logit;
    outputs[1 + beginning.near] = 1.0F;
    outputs[1 + beginning.far] = 1.0F;
    outputs[1 + kAnchorCount + 1] = beginning.log_scale;
  }
}

// Standard deviation of a layer's outputs for inputs with deviation 1.
float gain_of(const Tensor& weight) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), weight.name) != names.end();
  };
  if (is({"start", "embedding", "stay", "normal_mean", "normal_scale"})) return 0.0F;
  if (is({"worker_2", "q_scale", "gate_2", "drift", "emit_scale"})) return 0.1F;
  if (is({"q_mean", "prop_2", "emit_mean"})) return 0.3F;
  return 1.0F;
}

}  // namespace

Network::Network(const ModelShape& of, const at::Tensor& flat) : shape(of) {
  const std::vector<Tensor> layout = tensors_of(shape);
  std::vector<int64_t> sizes;
  for (const Tensor& tensor : layout) sizes.push_back(int64_t{tensor.rows} * tensor.columns);
  const std::vector<at::Tensor> parts = flat.split_with_sizes(sizes);
  const auto find = [&](std::string_view name) {
    const auto found = std::find_if(layout.begin(), layout.end(),
                                    [&](const Tensor& tensor) { return tensor.name == name; });
    DROVER_CHECK(found != layout.end());
    return parts[static_cast<size_t>(found - layout.begin())].view({found->rows, found->columns});
  };
  const auto linear = [&](const std::string& name) {
    return Linear{find(name), find(name + "_bias")};
  };
  start = find("start");
  gru_input = linear("gru_input");
  gru_hidden = linear("gru_hidden");
  combine = linear("combine");
  q_mean = linear("q_mean");
  q_scale = linear("q_scale");
  gate_1 = linear("gate_1");
  gate_2 = linear("gate_2");
  prop_1 = linear("prop_1");
  prop_2 = linear("prop_2");
  stay = linear("stay");
  drift = linear("drift");
  if (shape.emission == Emission::kShared) {
    embedding = find("embedding");
    pool_1 = linear("pool_1");
    pool_2 = linear("pool_2");
    worker_1 = linear("worker_1");
    worker_2 = linear("worker_2");
  } else {
    emit = linear("emit");
    emit_mean = linear("emit_mean");
    emit_scale = linear("emit_scale");
  }
}

at::Tensor flat_of(const ModelWeights& weights) {
  std::vector<float> values;
  for (const Tensor& tensor : weights.tensors) {
    DROVER_CHECK(tensor.values.size() == size_t{tensor.rows} * tensor.columns);
    values.insert(values.end(), tensor.values.begin(), tensor.values.end());
  }
  return at::from_blob(values.data(), {signed_size(values.size())}, at::kFloat).clone();
}

ModelWeights weights_of(const ModelShape& shape, const at::Tensor& flat) {
  const at::Tensor values = flat.detach().to(at::kFloat).contiguous();
  const float* next = values.data_ptr<float>();
  ModelWeights weights{.shape = shape, .tensors = tensors_of(shape)};
  for (Tensor& tensor : weights.tensors) {
    const size_t size = size_t{tensor.rows} * tensor.columns;
    tensor.values.assign(next, next + size);
    next += size;
  }
  DROVER_CHECK(next == values.data_ptr<float>() + values.numel());
  return weights;
}

ModelWeights initial_weights(const ModelShape& shape, uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  ModelWeights weights{.shape = shape, .tensors = tensors_of(shape)};
  for (Tensor& tensor : weights.tensors) {
    tensor.values.assign(size_t{tensor.rows} * tensor.columns, 0.0F);
    if (tensor.name.ends_with("_bias")) {
      set_bias(shape, tensor);
    } else if (const float gain = gain_of(tensor); gain > 0.0F) {
      const at::Tensor draws =
          at::randn({signed_size(tensor.values.size())}, generator, at::kFloat) *
          (gain / std::sqrt(static_cast<float>(tensor.columns)));
      std::copy_n(draws.data_ptr<float>(), tensor.values.size(), tensor.values.begin());
    }
    if (tensor.name == "stay") {
      for (uint32_t i = 0; i < tensor.rows; ++i) tensor.values[size_t{i} * tensor.columns + i] = 1;
    }
    if (tensor.name == "worker_2_bias") {
      // Each dimension of the state shifts all workers a little. Otherwise the state would have no
      // effect at first, and the KL term would suppress it.
      const at::Tensor loadings = at::randn({int64_t{shape.latent}}, generator, at::kFloat) * 0.3;
      std::copy_n(loadings.data_ptr<float>(), shape.latent, tensor.values.end() - shape.latent);
    }
  }
  return weights;
}

ModelWeights grown(const ModelWeights& start, const ModelWeights& fresh) {
  ModelWeights grown = fresh;
  for (Tensor& tensor : grown.tensors) {
    const Tensor& old = start.tensor(tensor.name);
    const uint32_t columns = std::min(tensor.columns, old.columns);
    for (uint32_t row = 0; row < std::min(tensor.rows, old.rows); ++row) {
      std::copy_n(&old.values[size_t{row} * old.columns], columns,
                  &tensor.values[size_t{row} * tensor.columns]);
    }
  }
  return grown;
}

at::Tensor encode(const Network& network, const at::Tensor& v) {
  const auto rnn = int64_t{network.shape.rnn};
  const at::Tensor nothing = at::zeros({1, v.size(1), rnn}, v.options());
  const std::vector<at::Tensor> weights = {network.gru_input.weight, network.gru_hidden.weight,
                                           network.gru_input.bias.view({3 * rnn}),
                                           network.gru_hidden.bias.view({3 * rnn})};
  const at::Tensor backwards = std::get<0>(
      at::gru(v.flip(0), nothing, weights, /*has_biases=*/true, /*num_layers=*/1, /*dropout=*/0.0,
              /*train=*/false, /*bidirectional=*/false, /*batch_first=*/false));
  return backwards.flip(0);
}

Proposal propose(const Network& network, const at::Tensor& g, const at::Tensor& noise) {
  // Mean and scale in one product; the factor of c = (tanh + g) / 2 is in the weights.
  const Linear q{at::cat({network.q_mean.weight, network.q_scale.weight}) * 0.5,
                 at::cat({network.q_mean.bias, network.q_scale.bias}, 1)};
  const auto latent = int64_t{network.shape.latent};
  at::Tensor z = network.start.expand({g.size(1), latent});
  const std::vector<at::Tensor> steps = g.unbind(0);
  const std::vector<at::Tensor> noises = noise.unbind(0);
  std::vector<at::Tensor> means, scales, draws;
  for (size_t t = 0; t < steps.size(); ++t) {
    const std::vector<at::Tensor> parts = q(network.combine(z).tanh() + steps[t]).split(latent, 1);
    means.push_back(parts[0]);
    scales.push_back(deviation(parts[1]));
    z = at::addcmul(means.back(), scales.back(), noises[t]);
    draws.push_back(z);
  }
  return {{at::stack(means), at::stack(scales)}, at::stack(draws)};
}

Normal transition(const Network& network, const at::Tensor& z) {
  const at::Tensor gate = at::sigmoid(network.gate_2(at::relu(network.gate_1(z))));
  const at::Tensor prop = network.prop_2(at::relu(network.prop_1(z)));
  return {at::lerp(network.stay(z), prop, gate), deviation(network.drift(at::relu(prop)))};
}

at::Tensor pool(const Network& network, const at::Tensor& inputs, const at::Tensor& embedding,
                const at::Tensor& took_part) {
  // pool_1 [f e surprise cut_short], with the embedding's part computed once for all groups.
  const at::Tensor& weight = network.pool_1.weight;
  const int64_t e = embedding.size(1);
  const at::Tensor others =
      at::cat({weight.narrow(1, 0, kFeatureCount), weight.narrow(1, kFeatureCount + e, 2)}, 1);
  const at::Tensor own =
      at::addmm(network.pool_1.bias, embedding, weight.narrow(1, kFeatureCount, e).t());
  const at::Tensor hidden = at::relu(at::matmul(inputs, others.t()) + own);
  const at::Tensor share = took_part / took_part.sum(1, /*keepdim=*/true).clamp_min(1.0);
  return network.pool_2(at::bmm(share.unsqueeze(1), hidden).squeeze(1));
}

at::Tensor describe_workers(const Network& network, const at::Tensor& inputs,
                            const at::Tensor& embedding) {
  const at::Tensor& weight = network.worker_1.weight;
  const at::Tensor own = at::addmm(network.worker_1.bias, embedding,
                                   weight.narrow(1, kFeatureCount, embedding.size(1)).t());
  const at::Tensor features = inputs.narrow(2, 0, kFeatureCount);
  const at::Tensor hidden =
      at::relu(at::matmul(features, weight.narrow(1, 0, kFeatureCount).t()) + own);
  const at::Tensor rows = hidden.reshape({-1, hidden.size(2)});
  return at::addmm(network.worker_2.bias.t(), network.worker_2.weight, rows.t())
      .view({-1, inputs.size(0), inputs.size(1)});
}

Normal emit_all(const Network& network, const at::Tensor& z) {
  const at::Tensor hidden = at::relu(network.emit(z));
  return {network.emit_mean(hidden), deviation(network.emit_scale(hidden))};
}

}  // namespace drover
