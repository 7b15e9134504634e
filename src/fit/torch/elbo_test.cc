// The objective, compared with slow loops and finite differences.
#include "fit/torch/elbo.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <memory>

#include "fit/test_histories.h"
#include "fit/torch/slow_forecast.h"

namespace drover {
namespace {

constexpr std::array kEmissions = {Emission::kShared, Emission::kWorkers, Emission::kSorted};

FitData tiny_data(Emission emission, size_t steps) {
  FitRequest request;
  request.history = std::make_shared<const History>(halved_history(4, steps, 1));
  request.shape = {.emission = emission,
                   .latent = 2,
                   .window = 3,
                   .rnn = 3,
                   .transition = 3,
                   .embedding = 2,
                   .pooled_hidden = 4,
                   .pooled = 2,
                   .worker_hidden = 4,
                   .components = 3,
                   .emission_hidden = 4};
  Result<FitData> data = prepare_data(request);
  EXPECT_TRUE(data.ok()) << data.error().message;
  return std::move(data).value();
}

// Initial weights, perturbed so that none of them is 0.
ModelWeights shaken(const FitData& data) {
  ModelWeights weights = initial_weights(data.shape, 5);
  uint64_t i = 0;
  for (Tensor& tensor : weights.tensors) {
    for (float& value : tensor.values) value += static_cast<float>(0.2 * normal_draw({8, i++}));
    if (tensor.name == "normal_mean") tensor.values = data.normal_mean;
    if (tensor.name == "normal_scale") tensor.values = {data.normal_scale};
  }
  return weights;
}

double took_part(std::span<const PastTime> row) {
  return static_cast<double>(std::count_if(
      row.begin(), row.end(), [](const PastTime& time) { return time.known != Known::kNothing; }));
}

at::Tensor random(at::IntArrayRef sizes) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(1);
  return at::randn(sizes, generator, at::kDouble);
}

at::Tensor every_worker() { return at::arange(4, at::kLong); }

TEST(Elbo, LogTailIsExactNearAndFar) {
  const auto tail = [](double x) {
    return log_tail(at::scalar_tensor(x, at::kDouble)).item<double>();
  };
  for (const double x : {-30.0, -3.0, 0.0, 1.0, 5.0, 19.99, 20.01, 30.0}) {
    EXPECT_NEAR(tail(x), std::log(0.5 * std::erfc(x / std::numbers::sqrt2)), 1e-6) << x;
  }
  EXPECT_NEAR(tail(1000.0), -0.5e6 - std::log(1000.0) - 0.5 * std::log(2 * std::numbers::pi), 1e-5);
  const at::Tensor x = at::tensor({-1e6F, -3.0F, 19.0F, 21.0F, 1e6F}).requires_grad_();
  log_tail(x).sum().backward();
  EXPECT_TRUE(at::isfinite(x.grad()).all().item<bool>()) << x.grad();
  EXPECT_NEAR(x.grad()[4].item<double>(), -1e6, 10.0) << "the gradient is large in the far tail";
}

TEST(Elbo, ForesightIsTheLikelihoodOfTheStepAfterTheWindow) {
  constexpr uint64_t kSeed = 11;
  constexpr int64_t kParticles = 5;
  for (const Emission emission : kEmissions) {
    SCOPED_TRACE(name_of(emission));
    const FitData data = tiny_data(emission, 32);
    const History history = halved_history(4, 32, 1);
    const ModelWeights weights = shaken(data);
    const Cells cells(data, at::kDouble);
    const Network network(data.shape, flat_of(weights).to(at::kDouble));
    for (const size_t next : {9U, 10U, 11U, 17U}) {  // in two of them a worker is missing
      // The same draws as in slow_forecast.
      const int64_t latent = data.shape.latent;
      const int64_t window = data.shape.window;
      std::vector<double> draws;
      for (uint64_t k = 0; k < kParticles; ++k) {
        for (uint64_t i = 0; i < static_cast<uint64_t>((window + 1) * latent); ++i) {
          draws.push_back(static_cast<float>(normal_draw({kSeed, next, k, i})));
        }
      }
      const at::Tensor all =
          at::tensor(draws, at::kDouble).view({kParticles, window + 1, latent}).transpose(0, 1);
      const Noise noise{all.narrow(0, 0, window), all.select(0, window), kParticles};
      const Windows windows(cells, at::tensor({static_cast<int64_t>(next)}, at::kLong),
                            every_worker());
      const Elbo elbo = elbo_of(network, windows, noise, true);
      const std::vector<PastTime> row = as_seen(history.row(next), emission);
      const double slow =
          log_likelihood(slow_forecast(weights, history, next, kParticles, kSeed), row);
      EXPECT_NEAR(elbo.foresight.item<double>(), slow / took_part(row), 1e-4) << next;
    }
  }
}

// Term by term, with the drawn states.
TEST(Elbo, IsLikelihoodLessDivergence) {
  for (const Emission emission : kEmissions) {
    SCOPED_TRACE(name_of(emission));
    const FitData data = tiny_data(emission, 32);
    const History history = halved_history(4, 32, 1);
    const ModelWeights weights = shaken(data);
    const Network network(data.shape, flat_of(weights).to(at::kDouble));
    const Noise noise{random({3, 1, 2}), random({1, 2}), 1};
    const Windows windows(Cells(data, at::kDouble), at::tensor({12}, at::kLong), every_worker());
    const Elbo elbo = elbo_of(network, windows, noise, false);

    std::vector<at::Tensor> v;
    for (size_t t = 9; t < 12; ++t) {
      const std::vector<float> seen =
          encoder_input(weights, views_before(history, t), history.row(t));
      v.push_back(at::tensor(seen).to(at::kDouble).unsqueeze(0));
    }
    const Proposal proposal = propose(network, encode(network, at::stack(v)), noise.q);
    double likelihood = 0.0;
    double divergence = 0.0;
    double entries = 0.0;
    for (int64_t t = 0; t < 3; ++t) {
      const at::Tensor z = proposal.z[t][0].to(at::kFloat).contiguous();
      const size_t step = 9 + static_cast<size_t>(t);
      const std::vector<PastTime> row = as_seen(history.row(step), emission);
      likelihood += log_likelihood(
          {mixtures_of(weights, views_before(history, step), {z.data_ptr<float>(), 2})}, row);
      entries += took_part(row);
      const Normal p = transition(network, t == 0 ? network.start : proposal.z[t - 1]);
      for (int64_t k = 0; k < 2; ++k) {
        const double q_scale = proposal.q.scale[t][0][k].item<double>();
        const double p_scale = p.scale[0][k].item<double>();
        const double apart = (proposal.q.mean[t][0][k] - p.mean[0][k]).item<double>();
        divergence += std::log(p_scale / q_scale) - 0.5 +
                      (q_scale * q_scale + apart * apart) / (2 * p_scale * p_scale);
      }
    }
    EXPECT_NEAR(elbo.likelihood.item<double>(), likelihood / entries, 1e-4);
    EXPECT_NEAR(elbo.divergence.item<double>(), divergence / entries, 1e-4);
  }
}

TEST(Elbo, WindowsDoNotMix) {
  for (const Emission emission : kEmissions) {
    SCOPED_TRACE(name_of(emission));
    const FitData data = tiny_data(emission, 32);
    const Cells cells(data, at::kDouble);
    const Network network(data.shape, flat_of(shaken(data)).to(at::kDouble));
    // Two particles of two windows.
    const Noise noise{random({3, 4, 2}), random({4, 2}), 2};
    const Windows both(cells, at::tensor({12, 20}, at::kLong), every_worker());
    const Elbo together = elbo_of(network, both, noise, true);
    std::array<double, 3> sums{};
    double entries = 0.0;
    double ahead = 0.0;
    for (const int64_t i : {0, 1}) {
      const at::Tensor rows = at::tensor({i, i + 2}, at::kLong);
      const Windows one(cells, at::tensor({i == 0 ? 12 : 20}, at::kLong), every_worker());
      const Elbo alone =
          elbo_of(network, one,
                  {noise.q.index_select(1, rows), noise.ahead.index_select(0, rows), 2}, true);
      const double inside = one.took_part.narrow(0, 0, 3).sum().item<double>();
      const double after = one.took_part[3].sum().item<double>();
      sums[0] += alone.likelihood.item<double>() * inside;
      sums[1] += alone.divergence.item<double>() * inside;
      sums[2] += alone.foresight.item<double>() * after;
      entries += inside;
      ahead += after;
    }
    EXPECT_NEAR(together.likelihood.item<double>(), sums[0] / entries, 1e-9);
    EXPECT_NEAR(together.divergence.item<double>(), sums[1] / entries, 1e-9);
    EXPECT_NEAR(together.foresight.item<double>(), sums[2] / ahead, 1e-9);
  }
}

TEST(Elbo, GradientsAreThoseOfFiniteDifferences) {
  for (const Emission emission : kEmissions) {
    SCOPED_TRACE(name_of(emission));
    const FitData data = tiny_data(emission, 32);
    const Cells cells(data, at::kDouble);
    const Windows windows(cells, at::tensor({10, 12, 17}, at::kLong), every_worker());
    ASSERT_TRUE(windows.cut_short.any().item<bool>());
    const Noise noise{random({3, 2 * 3, 2}), random({2 * 3, 2}), 2};
    at::Tensor flat = flat_of(shaken(data)).to(at::kDouble).requires_grad_();
    const auto objective = [&] {
      const Elbo elbo = elbo_of(Network(data.shape, flat), windows, noise, true);
      return elbo.bound(0.7) + 1.3 * elbo.foresight;
    };
    objective().backward();
    const at::Tensor gradient = flat.grad();
    EXPECT_GT(gradient.count_nonzero().item<int64_t>(), gradient.numel() / 2);
    const c10::NoGradGuard no_gradient;
    double* const values = flat.data_ptr<double>();
    for (int64_t i = 0; i < flat.numel(); ++i) {
      constexpr double kStep = 1e-6;
      const double value = values[i];
      values[i] = value + kStep;
      const double above = objective().item<double>();
      values[i] = value - kStep;
      const double below = objective().item<double>();
      values[i] = value;
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient[i].item<double>(), expected, 1e-6 * (1.0 + std::abs(expected))) << i;
    }
  }
}

// Steps without observations contribute nothing, and there is no NaN.
TEST(Elbo, AbsentWorkersDoNotCount) {
  for (const Emission emission : kEmissions) {
    SCOPED_TRACE(name_of(emission));
    FitData data = tiny_data(emission, 32);
    const at::Tensor flat = flat_of(shaken(data));
    const auto judged = [&] {
      const Cells cells(data, at::kFloat);
      const Noise noise{at::zeros({3, 1, 2}), at::zeros({1, 2}), 1};
      const Elbo elbo =
          elbo_of(Network(data.shape, flat),
                  Windows(cells, at::tensor({12}, at::kLong), every_worker()), noise, true);
      return std::vector{elbo.likelihood.item<double>(), elbo.divergence.item<double>(),
                         elbo.foresight.item<double>()};
    };
    for (size_t t = 9; t <= 12; ++t) data.took_part[t * 4 + 3] = 0.0F;
    if (emission != Emission::kShared) {
      for (size_t t = 9; t <= 12; ++t) data.inputs[t * 4 + 3] = 0.0F;
    }
    const std::vector<double> before = judged();
    for (size_t t = 9; t <= 12; ++t) data.target[t * 4 + 3] = 1e9F;
    EXPECT_EQ(judged(), before);
    std::fill(data.took_part.begin(), data.took_part.end(), 0.0F);
    for (const double value : judged()) EXPECT_TRUE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace drover
