// Trains a learned model with Adam on the ELBO of random windows, and evaluates it periodically on
// the newest steps.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "core/random_draw.h"
#include "fit/fit_data.h"
#include "fit/fit_entry.h"
#include "fit/torch/elbo.h"
#include "fit/torch/networks.h"

namespace drover {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
// Draws of the next state. With more draws, foresight is closer to a forecast of many samples. A
// chain is cheap, a likelihood is expensive.
constexpr int64_t kTrainingParticles = 8;
constexpr int64_t kJudgingParticles = 16;
// Enough to distinguish models; evaluation should not take longer than training.
constexpr size_t kJudgedWindows = 64;
constexpr size_t kJudgedWorkers = 128;
// Decay of embeddings towards 0, so that they only model differences that the features lack.
constexpr double kEmbeddingPull = 0.01;
constexpr double kLargestGradient = 1.0;  // norm, per run-time
constexpr int kMostBadIterations = 20;    // consecutive, without a finite gradient

// Standard Adam on a flat tensor; the second moment decays faster, because fits are short.
class Adam {
 public:
  explicit Adam(const at::Tensor& like)
      : first_(at::zeros_like(like)), second_(at::zeros_like(like)) {}

  void move(at::Tensor& flat, const at::Tensor& gradient, double rate) {
    constexpr double kFirstFading = 0.9;
    constexpr double kSecondFading = 0.99;
    ++moves_;
    first_.mul_(kFirstFading).add_(gradient, 1.0 - kFirstFading);
    second_.mul_(kSecondFading).addcmul_(gradient, gradient, 1.0 - kSecondFading);
    const double first_share = 1.0 - std::pow(kFirstFading, moves_);
    const double second_share = 1.0 - std::pow(kSecondFading, moves_);
    const at::Tensor spread = second_.sqrt().div_(std::sqrt(second_share)).add_(1e-8);
    flat.addcdiv_(first_, spread, -rate / first_share);
  }

 private:
  at::Tensor first_, second_;
  int moves_ = 0;
};

Noise make_noise(const ModelShape& shape, int64_t windows, int64_t particles,
                 at::Generator& generator) {
  const int64_t chains = windows * particles;
  return {at::randn({int64_t{shape.window}, chains, int64_t{shape.latent}}, generator, at::kFloat),
          at::randn({chains, int64_t{shape.latent}}, generator, at::kFloat), particles};
}

// `count` evenly spaced steps of begin..end-1, or all if there are fewer.
at::Tensor spread_out(size_t begin, size_t end, size_t count) {
  count = std::min(count, end - begin);
  std::vector<int64_t> chosen(count);
  for (size_t i = 0; i < count; ++i) {
    chosen[i] = static_cast<int64_t>(begin + i * (end - begin) / count);
  }
  return at::tensor(chosen, at::kLong);
}

struct Judgement {
  double elbo = kNothing;
  double foresight = kNothing;
};

// Evaluates weights on the newest steps, each time with the same windows and noise.
class Judge {
 public:
  // REQUIRES: there are held-out steps.
  Judge(const FitData& data, const Cells& cells, at::Generator& generator)
      : shape_(data.shape),
        windows_(cells, spread_out(data.held_out, data.steps, kJudgedWindows),
                 spread_out(0, data.workers(), looked_at(data)),
                 static_cast<int64_t>(data.held_out)),
        noise_(make_noise(shape_, windows_.count, kJudgingParticles, generator)) {}

  Judgement operator()(const at::Tensor& flat) const {
    const at::NoGradGuard no_gradient;
    const Elbo elbo = elbo_of(Network(shape_, flat), windows_, noise_, true);
    return {elbo.bound(1.0).item<double>(), elbo.foresight.item<double>()};
  }

 private:
  static size_t looked_at(const FitData& data) {
    return data.shape.emission == Emission::kShared ? kJudgedWorkers : data.workers();
  }

  ModelShape shape_;
  Windows windows_;
  Noise noise_;
};

bool same_but_for_workers(ModelShape left, const ModelShape& right) {
  left.workers = right.workers;
  return left == right;
}

bool can_start_from(const FitRequest& request, const FitData& data) {
  return request.start && same_but_for_workers(request.start->shape, data.shape);
}

ModelWeights beginning(const FitRequest& request, const FitData& data) {
  ModelWeights weights = initial_weights(data.shape, draw({request.settings.seed, 1}));
  if (can_start_from(request, data)) weights = grown(*request.start, weights);
  for (Tensor& tensor : weights.tensors) {
    // From these data, also with a warm start: run-times may have changed completely.
    if (tensor.name == "normal_mean") tensor.values = data.normal_mean;
    if (tensor.name == "normal_scale") tensor.values = {data.normal_scale};
  }
  return weights;
}

class Training {
 public:
  Training(const FitRequest& request, const FitData& data)
      : settings_(request.settings),
        data_(data),
        warm_(can_start_from(request, data)),
        cells_(data, at::kFloat),
        generator_(at::make_generator<at::CPUGeneratorImpl>(draw({settings_.seed, 2}))),
        flat_(flat_of(beginning(request, data)).requires_grad_()),
        adam_(flat_.detach()) {
    at::Generator judging = at::make_generator<at::CPUGeneratorImpl>(draw({settings_.seed, 3}));
    if (data.held_out < data.steps) judge_.emplace(data, cells_, judging);
    // Keeps the weights of a warm start until better ones are found.
    if (warm_ && judge_) best_ = {flat_.detach().clone(), (*judge_)(flat_)};
  }

  FitOutcome run(const FitListener& listener) {
    const uint32_t every = std::max<uint32_t>(1, settings_.judge_every);
    uint32_t worse = 0;
    int bad = 0;
    double bound_sum = 0.0;
    uint32_t bound_count = 0;
    for (uint32_t iteration = 1; iteration <= settings_.iterations; ++iteration) {
      const double bound = improve(iteration);
      if (std::isfinite(bound)) {
        bad = 0;
        bound_sum += bound;
        ++bound_count;
      } else if (++bad == kMostBadIterations) {
        break;
      }
      const FitPoint* judged = nullptr;
      if (iteration % every == 0 || iteration == settings_.iterations) {
        const bool better = consider();
        worse = better ? 0 : worse + 1;
        curve_.push_back(
            {iteration, bound_count > 0 ? bound_sum / bound_count : kNothing, last_.elbo});
        judged = &curve_.back();
        bound_sum = 0.0;
        bound_count = 0;
      }
      if (listener && !listener(iteration, judged)) break;
      if (judge_ && worse > 0 && worse >= settings_.patience) break;
    }
    if (!best_.flat.defined()) consider();
    FitOutcome outcome{weights_of(data_.shape, best_.flat), std::move(curve_)};
    outcome.weights.note = {settings_.seed, data_.steps, best_.judgement.elbo,
                            data_.cut_short_share};
    return outcome;
  }

 private:
  struct Best {
    at::Tensor flat;
    Judgement judgement;
  };

  // One update of Adam. Returns the ELBO before it; not finite if the update was skipped.
  double improve(uint32_t iteration) {
    const double progress = static_cast<double>(iteration) / settings_.iterations;
    // After a warm start, the state already has an effect, so there is no KL warm-up.
    const double beta =
        warm_ || settings_.kl_warmup <= 0.0 ? 1.0 : std::min(1.0, progress / settings_.kl_warmup);
    const double rate =
        settings_.learning_rate * (0.55 + 0.45 * std::cos(std::numbers::pi * progress));
    const bool foresight = settings_.foresight > 0.0;

    const int64_t windows = std::max<uint32_t>(1, settings_.batch);
    const at::Tensor next =
        at::randint(static_cast<int64_t>(data_.first_target()),
                    static_cast<int64_t>(data_.held_out), {windows}, generator_, at::kLong);
    const Noise noise =
        make_noise(data_.shape, windows, foresight ? kTrainingParticles : 1, generator_);
    const Network network(data_.shape, flat_);
    const Elbo elbo = elbo_of(network, Windows(cells_, next, choose_workers()), noise, foresight);
    at::Tensor loss = -elbo.bound(beta);
    if (foresight) loss = loss - settings_.foresight * elbo.foresight;
    if (network.embedding.defined()) {
      loss = loss + kEmbeddingPull * network.embedding.square().sum(1).mean();
    }
    const double bound = elbo.bound(1.0).item<double>();
    loss.backward();

    const at::NoGradGuard no_gradient;
    at::Tensor& gradient = flat_.mutable_grad();
    const double norm = gradient.norm().item<double>();
    const bool usable = std::isfinite(bound) && std::isfinite(norm);
    if (usable) {
      if (norm > kLargestGradient) gradient.mul_(kLargestGradient / norm);
      adam_.move(flat_, gradient, rate);
    }
    gradient.zero_();
    return usable ? bound : kNothing;
  }

  at::Tensor choose_workers() {
    const auto all = static_cast<int64_t>(data_.workers());
    const auto some = int64_t{std::max<uint32_t>(1, settings_.workers_a_batch)};
    if (data_.shape.emission != Emission::kShared || some >= all) return at::arange(all, at::kLong);
    return at::randperm(all, generator_, at::kLong).narrow(0, 0, some);
  }

  // Keeps the weights if they are the best so far by foresight: how well they forecast the held-out
  // steps from the steps before them, with all workers of a step together. The ELBO also counts how
  // well a step is explained afterwards, which decisions do not need.
  bool consider() {
    if (judge_) last_ = (*judge_)(flat_);
    const bool better = !best_.flat.defined() || !judge_ ||
                        last_.foresight > best_.judgement.foresight ||
                        std::isnan(best_.judgement.foresight);
    if (better) best_ = {flat_.detach().clone(), last_};
    return better;
  }

  FitSettings settings_;
  const FitData& data_;
  bool warm_;  // starts from a model
  Cells cells_;
  at::Generator generator_;
  at::Tensor flat_;
  Adam adam_;
  std::optional<Judge> judge_;
  Best best_;
  Judgement last_;
  std::vector<FitPoint> curve_;
};

// One thread, so that decisions can run on the other CPU cores during a fit.
void use_one_thread() {
  at::set_num_threads(1);
  // libtorch allows this to be set only once.
  if (at::get_num_interop_threads() != 1) at::set_num_interop_threads(1);
}

Result<FitOutcome> fit(const FitRequest& request, const FitListener& listener) {
  try {
    const Result<FitData> data = prepare_data(request);
    if (!data.ok()) return data.error();
    use_one_thread();
    return Training(request, data.value()).run(listener);
  } catch (const std::exception& error) {
    return system_error(std::string("libtorch could not fit a model: ") + error.what());
  }
}

}  // namespace
}  // namespace drover

__attribute__((visibility("default"))) uint64_t drover_fit_interface() {
  return drover::kFitInterface;
}

__attribute__((visibility("default"))) void drover_fit(drover::FitCall& call) {
  call.answer.emplace(drover::fit(*call.request, *call.listener));
}
