#include "forecast/learned/learned_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "forecast/learned/builds.h"
#include "forecast/learned/relative_ranks.h"
#include "forecast/learned/strata.h"
#include "forecast/learned/window.h"
#include "forecast/learned/worker_block.h"
#include "forecast/learned/worker_features.h"
#include "forecast/sort_rows.h"

namespace drover {
namespace {

// Steps that a new model learns in addition to its window. The features of workers build up over
// them.
constexpr size_t kLookBack = 64;

constexpr float kNothingAwaited = std::numeric_limits<float>::infinity();

// The largest difference from the fitted number of workers that a model tolerates.
uint32_t tolerated(size_t workers) { return std::max(2U, static_cast<uint32_t>(workers / 10)); }

void check_whole(const ModelWeights& weights) {
  const std::vector<Tensor> expected = tensors_of(weights.shape);
  DROVER_CHECK(weights.tensors.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor& tensor = weights.tensors[i];
    DROVER_CHECK(tensor.name == expected[i].name);
    DROVER_CHECK(tensor.rows == expected[i].rows);
    DROVER_CHECK(tensor.columns == expected[i].columns);
    DROVER_CHECK(tensor.values.size() == size_t{tensor.rows} * tensor.columns);
  }
}

}  // namespace

struct LearnedModel::Parts {
  Parts(std::shared_ptr<const ModelWeights> given, uint64_t seed_given, const Build& build)
      : weights(std::move(given)),
        shape(weights->shape),
        seed(seed_given),
        state_space(build.state_space(*weights)),
        window(shape.window, 3 * shape.rnn,
               shape.emission == Emission::kWorkers ? shape.workers : 0),
        v(shape.emission == Emission::kShared ? shape.pooled : shape.workers) {
    if (shape.emission == Emission::kShared) {
      shared = build.shared_emission(*weights);
    } else {
      published = build.published_emission(*weights);
      normal_mean = weights->tensor("normal_mean").values;
      normal_scale = weights->tensor("normal_scale").values.front();
    }
  }

  // The features of a worker, cached: a step needs them for the forecast and for learning.
  const WorkerView& view(WorkerId worker);
  void forget_views() { std::fill(view_known.begin(), view_known.end(), uint8_t{0}); }

  // Each computes v of a step that has ended, for one emission.
  void pool(std::span<const PastTime> row);
  void normalise(std::span<const PastTime> row);
  void sort(std::span<const PastTime> row);

  void draw_state(Step step, uint32_t samples);
  // Samples of `ids`, block by block.
  void sample(Step step, std::span<const WorkerId> ids, Forecast& out);
  void sample_sorted(Step step, uint32_t alive, uint32_t samples, Forecast& out);
  // The output of the network for this worker; for an unknown worker, that of a random other one.
  WorkerId output_for(Step step, WorkerId worker) const;

  const std::shared_ptr<const ModelWeights> weights;
  const ModelShape& shape;
  const uint64_t seed;
  const std::unique_ptr<StateSpace> state_space;
  std::unique_ptr<SharedEmission> shared;        // kShared
  std::unique_ptr<PublishedEmission> published;  // the others
  std::span<const float> normal_mean;
  float normal_scale = 1.0F;

  WorkerFeatures features;          // kShared
  std::vector<WorkerView> views;    // by worker
  std::vector<uint8_t> view_known;  // whether `views` has it
  Window window;
  uint64_t learned = 0;

  // Scratch.
  std::vector<float> v;
  std::vector<float> sorted;
  std::vector<float> uniforms;
  std::vector<float> z;
  std::vector<WorkerId> places;
  WorkerBlock block;
  BlockOutcome outcome;
  Forecast as_fitted;  // kSorted, if the number of workers alive differs
  RowSorter sorter;
};

LearnedModel::LearnedModel(std::shared_ptr<const ModelWeights> weights, uint64_t seed) {
  check_whole(*weights);
  parts_ = std::make_unique<Parts>(std::move(weights), seed, builds().back());
}

LearnedModel::~LearnedModel() = default;

const ModelWeights& LearnedModel::weights() const { return *parts_->weights; }

const WorkerView& LearnedModel::Parts::view(WorkerId worker) {
  if (worker >= views.size()) {
    views.resize(size_t{worker} + 1);
    view_known.resize(views.size(), 0);
  }
  if (view_known[worker] == 0) {
    views[worker] = features.view(worker);
    view_known[worker] = 1;
  }
  return views[worker];
}

void LearnedModel::Parts::pool(std::span<const PastTime> row) {
  shared->begin_pooling();
  block.count = 0;
  for (WorkerId id = 0; id < row.size(); ++id) {
    if (row[id].known == Known::kNothing) continue;
    const uint32_t at = block.count++;
    block.ids[at] = id;
    block.views[at] = view(id);
    outcome.log_time[at] = row[id].log_time;
    outcome.cut_short[at] = row[id].known == Known::kLonger ? 1.0F : 0.0F;
    if (block.count < kBlock) continue;
    shared->pool(block, outcome);
    block.count = 0;
  }
  if (block.count > 0) shared->pool(block, outcome);
  shared->end_pooling(v);
}

void LearnedModel::Parts::normalise(std::span<const PastTime> row) {
  const std::span<float> bounds = window.bounds(window.size() - 1);
  for (size_t i = 0; i < v.size(); ++i) {
    const PastTime time = i < row.size() ? row[i] : PastTime{};
    const bool absent = time.known == Known::kNothing;
    v[i] = absent ? 0.0F : (time.log_time - normal_mean[i]) / normal_scale;
    bounds[i] = time.known == Known::kLonger ? time.bound : kNothingAwaited;
  }
  std::copy(v.begin(), v.end(), window.values(window.size() - 1).begin());
}

void LearnedModel::Parts::sort(std::span<const PastTime> row) {
  sorted.clear();
  for (const PastTime& time : row) {
    if (time.known != Known::kNothing) sorted.push_back(time.log_time);
  }
  if (sorted.empty()) {
    std::fill(v.begin(), v.end(), 0.0F);
    return;
  }
  std::sort(sorted.begin(), sorted.end());
  // Spreads the missing workers over all ranks, instead of the last ones.
  stretch(sorted, v);
  for (size_t i = 0; i < v.size(); ++i) v[i] = (v[i] - normal_mean[i]) / normal_scale;
}

void LearnedModel::learn(Step step, std::span<const PastTime> row) {
  Parts& parts = *parts_;
  ++parts.learned;
  parts.window.push(step);
  switch (parts.shape.emission) {
    case Emission::kShared:
      parts.pool(row);
      parts.features.learn(step, row);
      parts.forget_views();
      break;
    case Emission::kWorkers:
      parts.normalise(row);
      break;
    case Emission::kSorted:
      parts.sort(row);
      break;
  }
  parts.state_space->project(parts.v, parts.window.projection(parts.window.size() - 1));
}

void LearnedModel::correct(Step step, WorkerId worker, float log_time) {
  Parts& parts = *parts_;
  if (parts.shape.emission == Emission::kShared) {
    parts.features.correct(step, worker, log_time);
    if (worker < parts.views.size()) parts.view_known[worker] = 0;
  }
  if (parts.shape.emission != Emission::kWorkers || worker >= parts.shape.workers) return;
  for (size_t i = 0; i < parts.window.size(); ++i) {
    if (parts.window.step(i) != step) continue;
    float& bound = parts.window.bounds(i)[worker];
    if (bound == kNothingAwaited) return;
    float& value = parts.window.values(i)[worker];
    const float truth =
        (std::max(bound, log_time) - parts.normal_mean[worker]) / parts.normal_scale;
    parts.state_space->amend(worker, truth - value, parts.window.projection(i));
    value = truth;
    bound = kNothingAwaited;
    return;
  }
}

std::string LearnedModel::incompatibility(std::span<const WorkerId> alive) const {
  const ModelShape& shape = parts_->shape;
  if (shape.emission == Emission::kShared) return "";
  const size_t most_apart = tolerated(shape.workers);
  const auto unknown = static_cast<size_t>(
      std::count_if(alive.begin(), alive.end(), [&](WorkerId id) { return id >= shape.workers; }));
  if (shape.emission == Emission::kWorkers && unknown > tolerated(alive.size())) {
    return fmt::format(
        "the model has outputs for {} workers, but {} of {} alive are others; a model with the "
        "emission 'shared' works for any workers",
        shape.workers, unknown, alive.size());
  }
  const size_t apart =
      alive.size() > shape.workers ? alive.size() - shape.workers : shape.workers - alive.size();
  if (shape.emission == Emission::kSorted && apart > most_apart) {
    return fmt::format(
        "the model was fitted for the arrivals of {} workers, but {} are alive; it tolerates a "
        "difference of {}; a model with the emission 'shared' works for any number",
        shape.workers, alive.size(), most_apart);
  }
  return "";
}

void LearnedModel::Parts::draw_state(Step step, uint32_t samples) {
  const size_t columns = (window.size() + 1) * shape.latent;
  const uint32_t bits = strata_bits(samples);
  uniforms.resize(columns * samples);
  z.resize(size_t{shape.latent} * samples);
  for (size_t column = 0; column < columns; ++column) {
    const Order order = state_order(seed, step, static_cast<uint32_t>(column));
    for (uint32_t k = 0; k < samples; ++k) {
      uniforms[column * samples + k] = uniform(order, k, bits);
    }
  }
  state_space->sample(window.projections(), uniforms, samples, z);
}

WorkerId LearnedModel::Parts::output_for(Step step, WorkerId worker) const {
  // An unknown worker uses the output of a random other one, drawn for each step.
  return worker < shape.workers ? worker
                                : forecast_draws(seed, step, worker, 12).below(shape.workers);
}

void LearnedModel::Parts::sample(Step step, std::span<const WorkerId> ids, Forecast& out) {
  if (published) published->set_state(z, out.samples);
  for (size_t begin = 0; begin < ids.size(); begin += kBlock) {
    block.count = static_cast<uint32_t>(std::min<size_t>(kBlock, ids.size() - begin));
    for (uint32_t i = 0; i < block.count; ++i) {
      const WorkerId id = ids[begin + i];
      block.orders.set(i, worker_order(seed, step, id));
      block.ids[i] = shared ? id : output_for(step, id);
      if (shared) block.views[i] = view(id);
    }
    const SampleTarget target{out.times.data() + begin, ids.size(), out.samples};
    if (shared) {
      shared->sample(block, z, target);
    } else {
      published->sample(block, target);
    }
  }
}

void LearnedModel::Parts::sample_sorted(Step step, uint32_t alive, uint32_t samples,
                                        Forecast& out) {
  while (places.size() < shape.workers) places.push_back(static_cast<WorkerId>(places.size()));
  Forecast& fitted = alive == shape.workers ? out : as_fitted;
  fitted.resize(samples, shape.workers);
  sample(step, places, fitted);
  sorter.sort(fitted);
  if (alive == shape.workers) return;
  out.resize(samples, alive);
  for (uint32_t k = 0; k < samples; ++k) stretch(fitted.row(k), out.row(k));
  out.sorted = true;
}

void LearnedModel::forecast(Step step, std::span<const WorkerId> alive, uint32_t samples,
                            Forecast& out) {
  Parts& parts = *parts_;
  DROVER_CHECK(parts.learned > 0);
  DROVER_CHECK(!alive.empty());
  DROVER_CHECK(samples >= 1);
  DROVER_CHECK(samples <= kMostSamples);
  const auto count = static_cast<uint32_t>(alive.size());
  parts.draw_state(step, samples);
  if (parts.shape.emission == Emission::kSorted) {
    DROVER_CHECK(incompatibility(alive).empty());
    parts.sample_sorted(step, count, samples, out);
    return;
  }
  out.resize(samples, count);
  parts.sample(step, alive, out);
}

std::unique_ptr<LearnedModel> model_after(std::shared_ptr<const ModelWeights> weights,
                                          uint64_t seed, const History& history) {
  const size_t steps = history.steps();
  const size_t wanted = kLookBack + weights->shape.window;
  auto model = std::make_unique<LearnedModel>(std::move(weights), seed);
  for (size_t i = steps - std::min(steps, wanted); i < steps; ++i)
    model->learn(history.step(i), history.row(i));
  return model;
}

}  // namespace drover
