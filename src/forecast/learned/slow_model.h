// Reference implementation of the formulas of model_weights.h in plain loops of doubles, for tests
// of the vectorised passes.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "forecast/learned/model_weights.h"
#include "forecast/learned/worker_features.h"
#include "forecast/normal.h"

namespace drover::testing_support {

using Numbers = std::vector<double>;

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
inline double slow_softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}
inline Numbers relu(Numbers x) {
  for (double& each : x) each = std::max(0.0, each);
  return x;
}

// W x + b.
inline Numbers layer(const ModelWeights& weights, const std::string& name, const Numbers& x) {
  const Tensor& w = weights.tensor(name);
  const Tensor& b = weights.tensor(name + "_bias");
  Numbers y;
  for (uint32_t i = 0; i < w.rows; ++i) {
    double sum = b.values[i];
    for (uint32_t j = 0; j < w.columns; ++j) {
      sum += double{w.values[size_t{i} * w.columns + j]} * x.at(j);
    }
    y.push_back(sum);
  }
  return y;
}

// g_t for every v, oldest first.
inline std::vector<Numbers> slow_encode(const ModelWeights& weights,
                                        const std::vector<Numbers>& v) {
  const size_t rnn = weights.shape.rnn;
  std::vector<Numbers> g(v.size());
  Numbers h(rnn, 0.0);
  for (size_t t = v.size(); t-- > 0;) {
    const Numbers x = layer(weights, "gru_input", v[t]);
    const Numbers y = layer(weights, "gru_hidden", h);
    for (size_t i = 0; i < rnn; ++i) {
      const double r = sigmoid(x[i] + y[i]);
      const double u = sigmoid(x[rnn + i] + y[rnn + i]);
      const double n = std::tanh(x[2 * rnn + i] + r * y[2 * rnn + i]);
      h[i] = (1.0 - u) * n + u * h[i];
    }
    g[t] = h;
  }
  return g;
}

// One sample of the state after the window; `noise`: standard normal, of each step of the window
// and then of the one after it, by dimension.
inline Numbers slow_state(const ModelWeights& weights, const std::vector<Numbers>& v,
                          const std::vector<Numbers>& noise) {
  const std::vector<Numbers> g = slow_encode(weights, v);
  const Tensor& start = weights.tensor("start");
  Numbers z(start.values.begin(), start.values.end());
  for (size_t t = 0; t < v.size(); ++t) {
    Numbers c = layer(weights, "combine", z);
    for (size_t i = 0; i < c.size(); ++i) c[i] = (std::tanh(c[i]) + g[t][i]) / 2.0;
    const Numbers mean = layer(weights, "q_mean", c);
    const Numbers scale = layer(weights, "q_scale", c);
    for (size_t j = 0; j < z.size(); ++j) {
      z[j] = mean[j] + (slow_softplus(scale[j]) + 0.001) * noise[t][j];
    }
  }
  const Numbers gate = layer(weights, "gate_2", relu(layer(weights, "gate_1", z)));
  const Numbers prop = layer(weights, "prop_2", relu(layer(weights, "prop_1", z)));
  const Numbers stay = layer(weights, "stay", z);
  const Numbers drift = layer(weights, "drift", relu(prop));
  for (size_t j = 0; j < z.size(); ++j) {
    const double share = sigmoid(gate[j]);
    z[j] = (1.0 - share) * stay[j] + share * prop[j] +
           (slow_softplus(drift[j]) + 0.001) * noise.back()[j];
  }
  return z;
}

// [f e]
inline Numbers slow_input(const ModelWeights& weights, WorkerId id, const WorkerView& view) {
  Numbers x(view.features.begin(), view.features.end());
  const Tensor& embedding = weights.tensor("embedding");
  for (uint32_t j = 0; j < embedding.columns; ++j) {
    x.push_back(id < embedding.rows ? embedding.values[size_t{id} * embedding.columns + j] : 0.0F);
  }
  return x;
}

// What a step has shown of one worker.
struct Shown {
  WorkerId id = 0;
  WorkerView view;  // before it
  double log_time = 0.0;
  bool cut_short = false;
};

inline Numbers slow_pool(const ModelWeights& weights, const std::vector<Shown>& all) {
  Numbers mean(weights.shape.pooled_hidden, 0.0);
  for (const Shown& each : all) {
    Numbers x = slow_input(weights, each.id, each.view);
    const double off = (each.log_time - each.view.anchors[kMidAnchor]) / each.view.scale;
    x.push_back(std::copysign(std::log1p(std::abs(off)), off));
    x.push_back(each.cut_short ? 1.0 : 0.0);
    const Numbers hidden = relu(layer(weights, "pool_1", x));
    for (size_t i = 0; i < hidden.size(); ++i) {
      mean[i] += hidden[i] / static_cast<double>(all.size());
    }
  }
  return layer(weights, "pool_2", mean);
}

// A worker's log time given z: a mixture of normals, or one of them.
struct SlowMixture {
  Numbers weight;
  Numbers mean;
  Numbers scale;

  double cdf(double x) const {
    double sum = 0.0;
    for (size_t c = 0; c < weight.size(); ++c) {
      sum += weight[c] * normal_cdf((x - mean[c]) / scale[c]);
    }
    return sum;
  }
  // As samples are drawn: u chooses the component, and then the place in it. `near_edge`: it takes
  // but a rounding error to choose another.
  double pick(double u, bool& near_edge) const {
    double before = 0.0;
    size_t c = 0;
    near_edge = false;
    for (; c + 1 < weight.size() && u >= before + weight[c]; ++c) before += weight[c];
    for (double edge = 0.0; const double each : weight) {
      edge += each;
      near_edge = near_edge || (std::abs(u - edge) < 1e-5 && edge < 1.0 - 1e-9);
    }
    const double place = std::clamp((u - before) / weight[c], 0x1.0p-24, 1.0 - 0x1.0p-24);
    return mean[c] + scale[c] * normal_quantile(place);
  }
};

inline Numbers softmax(const Numbers& logits) {
  Numbers shares;
  double sum = 0.0;
  for (const double each : logits) sum += std::exp(each);
  for (const double each : logits) shares.push_back(std::exp(each) / sum);
  return shares;
}

inline SlowMixture slow_shared(const ModelWeights& weights, WorkerId id, const WorkerView& view,
                               const Numbers& z) {
  const Numbers w =
      layer(weights, "worker_2", relu(layer(weights, "worker_1", slow_input(weights, id, view))));
  const size_t each = outputs_per_component();
  double pushed = 0.0;
  for (size_t j = 0; j < z.size(); ++j) pushed += w[weights.shape.components * each + j] * z[j];
  SlowMixture mixture;
  Numbers logits;
  for (size_t c = 0; c < weights.shape.components; ++c) {
    const double* const at = w.data() + c * each;
    logits.push_back(at[0]);
    const Numbers shares = softmax(Numbers(at + 1, at + 1 + kAnchorCount));
    double anchor = 0.0;
    for (size_t a = 0; a < kAnchorCount; ++a) anchor += shares[a] * view.anchors[a];
    mixture.mean.push_back(anchor + view.scale * (at[1 + kAnchorCount] + pushed));
    mixture.scale.push_back(view.scale * std::exp(std::clamp(at[2 + kAnchorCount], -5.0, 5.0)));
  }
  mixture.weight = softmax(logits);
  return mixture;
}

inline SlowMixture slow_published(const ModelWeights& weights, WorkerId output, const Numbers& z) {
  const Numbers hidden = relu(layer(weights, "emit", z));
  const double unit = weights.tensor("normal_scale").values[0];
  const double mean = layer(weights, "emit_mean", hidden)[output];
  const double scale = slow_softplus(layer(weights, "emit_scale", hidden)[output]) + 0.001;
  return {{1.0}, {mean * unit + weights.tensor("normal_mean").values[output]}, {scale * unit}};
}

}  // namespace drover::testing_support
