// Makes the initial model of `bayes` (src/forecast/learned/prior.model): fitted to many synthetic
// clusters, so that it has learned what clusters have in common: how long slow phases last, how a
// worker recovers, how informative a bound is. A run then fits it to its own
// cluster.
//
//   build/release/bin/make_prior src/forecast/learned/prior.model [clusters] [iterations] [seed]
//
// The same arguments give the same file on the same machine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "fit/fit_module.h"
#include "forecast/learned/fitting.h"
#include "forecast/learned/impute.h"
#include "forecast/learned/model_file.h"
#include "forecast/normal.h"
#include "forecast/sampling.h"
#include "policy/objective.h"

namespace drover {
namespace {

constexpr size_t kWorkers = 32;
constexpr size_t kSteps = 150;

// Random draws for one synthetic cluster.
class Dice {
 public:
  explicit Dice(uint64_t key) : draws_(key) {}
  double uniform(double low, double high) { return low + (high - low) * draws_.unit(); }
  double log_uniform(double low, double high) {
    return std::exp(uniform(std::log(low), std::log(high)));
  }
  bool happens(double probability) { return draws_.unit() < probability; }
  double normal() { return normal_quantile(std::clamp(draws_.unit(), 1e-12, 1.0 - 1e-12)); }
  double exponential() { return -std::log(1.0 - draws_.unit()); }
  size_t below(size_t count) { return draws_.below(static_cast<uint32_t>(count)); }

 private:
  DrawStream draws_;
};

// Slow phases with random starts and ends, of single workers or of whole nodes.
struct SlowPhases {
  size_t group = 1;  // workers that are slow together
  double enter = 0.0;
  double leave = 1.0;
  double factor = 1.0;
  std::vector<bool> slow = std::vector<bool>(kWorkers);

  static SlowPhases make(Dice& dice, size_t group) {
    SlowPhases phases;
    phases.group = group;
    if (dice.happens(0.4)) return phases;  // none
    phases.enter = dice.log_uniform(0.002, 0.04);
    phases.leave = dice.log_uniform(0.01, 0.5);
    phases.factor = dice.log_uniform(1.1, 5.0);
    for (size_t i = 0; i < kWorkers; i += group) {
      set(phases, i, dice.happens(phases.enter / (phases.enter + phases.leave)));
    }
    return phases;
  }
  void step(Dice& dice) {
    for (size_t i = 0; i < kWorkers; i += group) {
      set(*this, i, slow[i] ? !dice.happens(leave) : dice.happens(enter));
    }
  }

 private:
  static void set(SlowPhases& phases, size_t first, bool slow) {
    for (size_t i = first; i < std::min(kWorkers, first + phases.group); ++i) phases.slow[i] = slow;
  }
};

// Run-times of one cluster, step by step.
class Cluster {
 public:
  explicit Cluster(uint64_t key)
      : dice_(key),
        own_(SlowPhases::make(dice_, 1)),
        nodes_(SlowPhases::make(dice_, 4 * (1 + dice_.below(3)))) {
    noise_ = dice_.log_uniform(0.003, 0.3);
    skewed_ = dice_.happens(0.3);
    const double unequal = dice_.happens(0.5) ? dice_.uniform(0.02, 0.4) : 0.0;
    for (double& level : levels_) level = unequal * dice_.normal();
    spike_ = dice_.happens(0.5) ? dice_.log_uniform(0.003, 0.15) : 0.0;
    spike_size_ = dice_.log_uniform(0.1, 3.0);
    together_ = dice_.happens(0.3) ? dice_.log_uniform(0.01, 0.2) : 0.0;
    memory_ = dice_.uniform(0.0, 0.98);
    if (dice_.happens(0.5)) change_at_ = 10 + dice_.below(kSteps);
  }

  std::vector<double> next() {
    own_.step(dice_);
    nodes_.step(dice_);
    shift_ = memory_ * shift_ + together_ * dice_.normal();
    if (++step_ == change_at_) change();
    std::vector<double> times(kWorkers);
    for (size_t i = 0; i < kWorkers; ++i) {
      const double noise = skewed_ ? dice_.exponential() : dice_.normal();
      double time = std::exp(levels_[i] + shift_ + noise_ * noise);
      if (own_.slow[i]) time *= own_.factor;
      if (nodes_.slow[i]) time *= nodes_.factor;
      if (dice_.happens(spike_)) time *= 1.0 + spike_size_ * dice_.exponential();
      times[i] = time;
    }
    return times;
  }

 private:
  // A group of neighbouring workers becomes slower or faster.
  void change() {
    const size_t first = dice_.below(kWorkers);
    const size_t count = 1 + dice_.below(kWorkers / 2);
    const double by = dice_.normal();
    for (size_t i = first; i < std::min(kWorkers, first + count); ++i) levels_[i] += by;
  }

  Dice dice_;
  SlowPhases own_;
  SlowPhases nodes_;
  std::array<double, kWorkers> levels_{};
  double noise_ = 0.0;
  bool skewed_ = false;
  double spike_ = 0.0;
  double spike_size_ = 0.0;
  double together_ = 0.0;
  double memory_ = 0.0;
  double shift_ = 0.0;
  size_t step_ = 0;
  size_t change_at_ = 0;
};

// The record of a run on it. Two of three runs close steps early, at the best cutoff of the last
// step.
std::vector<StepTimes> record_of(uint64_t key) {
  Cluster cluster(draw({key, 1}));
  Dice dice(draw({key, 2}));
  const bool cutting = dice.happens(0.67);
  const double probes = dice.happens(0.5) ? dice.uniform(0.0, 0.1) : 0.0;
  std::vector<StepTimes> record;
  uint32_t cutoff = kWorkers;
  for (Step step = 0; step < kSteps; ++step) {
    const std::vector<double> times = cluster.next();
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    const bool cut = cutting && step >= 15 && !dice.happens(0.1);
    const double bound = cut ? sorted[cutoff - 1] : sorted.back();
    StepTimes seen{.step = step, .elapsed = bound};
    for (const double time : times) {
      const bool known = time <= bound || dice.happens(probes);
      seen.seconds.push_back(known ? time : bound);
      seen.known.push_back(known ? Known::kArrived : Known::kLonger);
    }
    record.push_back(std::move(seen));
    cutoff = CutoffSearch::best(sorted, Terms{}).cutoff;
  }
  return record;
}

int make(const std::string& path, uint64_t clusters, uint32_t iterations, uint64_t seed) {
  const Result<FitFunction> fit = load_fit_function();
  if (!fit) {
    fmt::print(stderr, "{}\n", fit.error().message);
    return 1;
  }
  // Concatenates the clusters, as if one cluster changed completely from time to time. The first
  // steps of each are not informative. The embeddings, which belong to no worker, are removed.
  auto history = std::make_shared<History>(SIZE_MAX / 2);
  Step step = 0;
  for (uint64_t i = 0; i < clusters; ++i) {
    const History one = history_of(record_of(draw({seed, i})), draw({seed, i, 3}));
    for (size_t t = 0; t < one.steps(); ++t) history->add(step++, one.row(t));
  }
  FitRequest request;
  request.history = history;
  request.shape = default_shape(Emission::kShared, kWorkers);
  request.settings = {.seed = seed, .iterations = iterations, .batch = 64, .patience = 1000};
  const Result<FitOutcome> outcome =
      fit.value()(request, [&](uint32_t iteration, const FitPoint* judged) {
        if (judged != nullptr && iteration % 200 == 0) {
          fmt::print(stderr, "{:6} of {}: ELBO {:.4f}, held out {:.4f}\n", iteration, iterations,
                     judged->train_elbo, judged->held_out_elbo);
        }
        return true;
      });
  if (!outcome) {
    fmt::print(stderr, "{}\n", outcome.error().message);
    return 1;
  }
  ModelWeights weights = outcome.value().weights;
  weights.shape.workers = 1;
  for (Tensor& tensor : weights.tensors) {
    if (tensor.name != "embedding") continue;
    tensor.rows = 1;
    tensor.values.assign(tensor.columns, 0.0F);
  }
  const std::string bytes = encode_model(weights);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file.good() ? 0 : 1;
}

}  // namespace
}  // namespace drover

int main(int argc, char** argv) {
  const auto number = [&](int i, unsigned long by_default) {
    return argc > i ? std::strtoul(argv[i], nullptr, 10) : by_default;
  };
  if (argc < 2) return 1;
  return drover::make(argv[1], number(2, 80), static_cast<uint32_t>(number(3, 3000)), number(4, 1));
}
