// The forecast of a fitted model in plain loops, from the formulas of
// forecast/learned/model_weights.h: slow, and independent of the training code. For tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "fit/test_histories.h"
#include "fit/torch/reference_pass.h"

namespace drover {

// A worker's log time in one draw of the state: a mixture of normals.
struct Component {
  double weight, mean, scale;
};
using Mixture = std::vector<Component>;

inline std::vector<double> softmax(std::span<const float> logits) {
  const float most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> weights;
  double sum = 0.0;
  for (const float logit : logits) sum += weights.emplace_back(std::exp(double{logit} - most));
  for (double& weight : weights) weight /= sum;
  return weights;
}

// `outputs` are worker_2's of this worker.
inline Mixture mixture_of(const ModelShape& shape, std::span<const float> outputs,
                          const WorkerView& view, std::span<const float> z) {
  const size_t each = outputs_per_component();
  double shift = 0.0;
  for (size_t k = 0; k < shape.latent; ++k) {
    shift += double{outputs[shape.components * each + k]} * z[k];
  }
  std::vector<float> logits;
  for (size_t c = 0; c < shape.components; ++c) logits.push_back(outputs[c * each]);
  const std::vector<double> weights = softmax(logits);
  Mixture mixture;
  for (size_t c = 0; c < shape.components; ++c) {
    const std::span<const float> mine = outputs.subspan(c * each, each);
    const std::vector<double> pulls = softmax(mine.subspan(1, kAnchorCount));
    double mean = view.scale * (mine[1 + kAnchorCount] + shift);
    for (size_t a = 0; a < kAnchorCount; ++a) mean += pulls[a] * view.anchors[a];
    const double log_scale = std::clamp(double{mine[2 + kAnchorCount]}, -5.0, 5.0);
    mixture.push_back({weights[c], mean, view.scale * std::exp(log_scale)});
  }
  return mixture;
}

// Density at x, and probability beyond x.
inline double density(const Mixture& mixture, double x) {
  double sum = 0.0;
  for (const auto& [weight, mean, scale] : mixture) {
    const double distance = (x - mean) / scale;
    sum +=
        weight * std::exp(-0.5 * distance * distance) / scale / std::sqrt(2.0 * std::numbers::pi);
  }
  return sum;
}
inline double longer_than(const Mixture& mixture, double x) {
  double sum = 0.0;
  for (const auto& [weight, mean, scale] : mixture) {
    sum += weight * 0.5 * std::erfc((x - mean) / scale / std::numbers::sqrt2);
  }
  return sum;
}

// A row by worker, or for kSorted by rank: arrivals, then censored run-times, then absent workers.
inline std::vector<PastTime> as_seen(std::span<const PastTime> row, Emission emission) {
  std::vector<PastTime> seen;
  if (emission != Emission::kSorted) return {row.begin(), row.end()};
  for (const Known known : {Known::kArrived, Known::kLonger, Known::kNothing}) {
    const size_t begin = seen.size();
    for (const PastTime& time : row) {
      if (time.known == known) seen.push_back(time);
    }
    std::sort(seen.begin() + static_cast<ptrdiff_t>(begin), seen.end(),
              [](const PastTime& a, const PastTime& b) { return a.log_time < b.log_time; });
  }
  return seen;
}

// The distribution of each worker or rank, given the state. `views` are as of before the
// step.
inline std::vector<Mixture> mixtures_of(const ModelWeights& weights,
                                        std::span<const WorkerView> views,
                                        std::span<const float> z) {
  const ModelShape& shape = weights.shape;
  const ReferencePass pass(weights);
  std::vector<Mixture> mixtures;
  if (shape.emission == Emission::kShared) {
    const std::vector<float> outputs = pass.worker_outputs(views);
    const size_t each = worker_outputs(shape);
    for (size_t i = 0; i < views.size(); ++i) {
      const auto mine = std::span<const float>(outputs).subspan(i * each, each);
      mixtures.push_back(mixture_of(shape, mine, views[i], z));
    }
    return mixtures;
  }
  const ReferencePass::Emitted emitted = pass.emitted(z);
  const std::vector<float>& normal = weights.tensor("normal_mean").values;
  const double unit = weights.tensor("normal_scale").values[0];
  for (size_t i = 0; i < emitted.mean.size(); ++i) {
    mixtures.push_back({{1.0, emitted.mean[i] * unit + normal[i], emitted.scale[i] * unit}});
  }
  return mixtures;
}

// The encoder's input for a step.
inline std::vector<float> encoder_input(const ModelWeights& weights,
                                        std::span<const WorkerView> views,
                                        std::span<const PastTime> row) {
  const Emission emission = weights.shape.emission;
  if (emission == Emission::kShared) return ReferencePass(weights).pooled(views, row);
  const std::vector<float>& normal = weights.tensor("normal_mean").values;
  const float unit = weights.tensor("normal_scale").values[0];
  std::vector<float> v;
  for (const PastTime& time : as_seen(row, emission)) {
    const bool absent = time.known == Known::kNothing;
    v.push_back(absent ? 0.0F : (time.log_time - normal[v.size()]) / unit);
  }
  return v;
}

// The features of all workers before step `t` of a history.
inline std::vector<WorkerView> views_before(const History& history, size_t t) {
  WorkerFeatures features;
  for (size_t s = 0; s < t; ++s) features.learn(history.step(s), history.row(s));
  std::vector<WorkerView> views;
  for (WorkerId i = 0; i < history.workers(); ++i) views.push_back(features.view(i));
  return views;
}

// Draws of each worker's distribution in step `t` of a history, from the steps before it:
// draws x workers. REQUIRES: t >= the length of the window.
inline std::vector<std::vector<Mixture>> slow_forecast(const ModelWeights& weights,
                                                       const History& history, size_t t,
                                                       size_t draws, uint64_t seed) {
  const ModelShape& shape = weights.shape;
  std::vector<float> v;
  for (size_t s = t - shape.window; s < t; ++s) {
    const std::vector<float> seen =
        encoder_input(weights, views_before(history, s), history.row(s));
    v.insert(v.end(), seen.begin(), seen.end());
  }
  const std::vector<WorkerView> views = views_before(history, t);
  std::vector<std::vector<Mixture>> answer;
  for (uint64_t k = 0; k < draws; ++k) {
    std::vector<float> noise;
    for (uint64_t i = 0; i < (shape.window + 1ULL) * shape.latent; ++i) {
      noise.push_back(static_cast<float>(normal_draw({seed, t, k, i})));
    }
    const std::span<const float> all(noise);
    const size_t within = size_t{shape.window} * shape.latent;
    const ReferencePass pass(weights);
    answer.push_back(
        mixtures_of(weights, views, pass.states(v, all.first(within), all.subspan(within)).next));
  }
  return answer;
}

// log of the mean over draws of the likelihood of a whole row.
inline double log_likelihood(const std::vector<std::vector<Mixture>>& draws,
                             std::span<const PastTime> row) {
  std::vector<double> logs;
  for (const std::vector<Mixture>& mixtures : draws) {
    double& sum = logs.emplace_back(0.0);
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].known == Known::kArrived) sum += std::log(density(mixtures[i], row[i].log_time));
      if (row[i].known == Known::kLonger) sum += std::log(longer_than(mixtures[i], row[i].bound));
    }
  }
  const double most = *std::max_element(logs.begin(), logs.end());
  double sum = 0.0;
  for (const double log : logs) sum += std::exp(log - most);
  return most + std::log(sum / static_cast<double>(logs.size()));
}

// The probability that a worker takes longer than x, over all draws.
inline double longer_than(const std::vector<std::vector<Mixture>>& draws, size_t worker, double x) {
  double sum = 0.0;
  for (const std::vector<Mixture>& mixtures : draws) sum += longer_than(mixtures[worker], x);
  return sum / static_cast<double>(draws.size());
}

}  // namespace drover
