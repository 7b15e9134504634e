// The cost of few samples: the expected throughput of the cutoff found with K samples, compared
// with the cutoff found with 1000, both evaluated with many more. learned_samples() was chosen with
// this program.
#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "forecast/learned/learned_model.h"
#include "forecast/learned/random_model.h"
#include "forecast/sort_rows.h"
#include "policy/objective.h"

namespace drover {
namespace {

constexpr uint32_t kMany = 4096;
constexpr uint32_t kTries = 24;

// Adds to the bias of the per-worker network: `logit`, `offset` and `log_scale` of a component.
void set_component(ModelWeights& weights, uint32_t component, float logit, float offset,
                   float log_scale) {
  for (Tensor& tensor : weights.tensors) {
    if (tensor.name != "worker_2_bias") continue;
    const size_t at = size_t{component} * outputs_per_component();
    tensor.values[at] = logit;
    tensor.values[at + outputs_per_component() - 2] = offset;
    tensor.values[at + outputs_per_component() - 1] = log_scale;
  }
}

void scale_tensor(ModelWeights& weights, std::string_view name, float factor) {
  for (Tensor& tensor : weights.tensors) {
    if (tensor.name != name) continue;
    for (float& value : tensor.values) value *= factor;
  }
}

// Random models that resemble clusters: 'plain' has one lognormal per worker, 'tails' has
// occasional very late workers, 'regimes' has a state that affects large parts of the cluster.
std::shared_ptr<const ModelWeights> model_like(const std::string& kind, uint32_t workers,
                                               uint64_t seed) {
  auto weights =
      std::make_shared<ModelWeights>(random_model(default_shape(Emission::kShared, workers), seed));
  scale_tensor(*weights, "worker_2", 0.4F);
  if (kind == "plain") {
    set_component(*weights, 0, 6.0F, 0.0F, 0.0F);
    set_component(*weights, 1, -6.0F, 0.0F, 0.0F);
    set_component(*weights, 2, -6.0F, 0.0F, 0.0F);
  } else {
    set_component(*weights, 0, 3.0F, 0.0F, -0.5F);
    set_component(*weights, 1, 0.5F, 4.0F, 0.5F);
    set_component(*weights, 2, -1.0F, 10.0F, 1.5F);
  }
  if (kind == "regimes") {
    // All loadings: the last rows of worker_2.
    for (Tensor& tensor : weights->tensors) {
      if (tensor.name != "worker_2") continue;
      const size_t begin = tensor.values.size() - size_t{weights->shape.latent} * tensor.columns;
      for (size_t i = begin; i < tensor.values.size(); ++i) tensor.values[i] *= 8.0F;
    }
  }
  return weights;
}

double expected(const Forecast& forecast, uint32_t cutoff, double overhead) {
  double sum = 0.0;
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    sum += cutoff / (overhead + double{forecast.row(k)[cutoff - 1]});
  }
  return sum / forecast.samples;
}

void measure(const std::string& kind, uint32_t workers) {
  const std::vector<uint32_t> counts = {16, 32, 64, 128, 256, 1000};
  std::vector<double> lost(counts.size(), 0.0);
  std::vector<double> most(counts.size(), 0.0);
  std::vector<WorkerId> alive(workers);
  std::iota(alive.begin(), alive.end(), 0U);
  CutoffSearch search;
  Forecast many;
  Forecast few;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    LearnedModel model(model_like(kind, workers, seed), seed);
    for (Step step = 0; step < 40; ++step) {
      std::vector<PastTime> row;
      for (uint32_t i = 0; i < workers; ++i) {
        const auto log_time = static_cast<float>(1.0 + 0.3 * unit_interval(draw({i, 1})) +
                                                 0.15 * spread_draw(step, i));
        row.push_back({log_time, log_time, Known::kArrived});
      }
      model.learn(step, row);
    }
    model.forecast(1'000'000, alive, kMany, many);
    sort_rows(many);
    const double overhead = 0.2;
    for (size_t i = 0; i < counts.size(); ++i) {
      for (uint64_t t = 0; t < kTries; ++t) {
        model.forecast(1000 + t, alive, counts[i], few);
        sort_rows(few);
        const double best = search.best(many, {.overhead = overhead}).value;
        const double found =
            expected(many, search.best(few, {.overhead = overhead}).cutoff, overhead);
        lost[i] += (1.0 - found / best) / (4.0 * kTries);
        most[i] = std::max(most[i], 1.0 - found / best);
      }
    }
  }
  fmt::print("{:<8} {:>6}", kind, workers);
  for (size_t i = 0; i < counts.size(); ++i) {
    fmt::print("  {:>4}: {:.3f} ({:.2f}) %", counts[i], 100.0 * lost[i], 100.0 * most[i]);
  }
  fmt::print("\n");
}

}  // namespace
}  // namespace drover

int main() {
  fmt::print("throughput lost by this number of samples, mean (maximum)\n");
  for (const char* kind : {"plain", "tails", "regimes"}) {
    for (const uint32_t workers : {16U, 158U, 640U, 2175U}) drover::measure(kind, workers);
  }
}
