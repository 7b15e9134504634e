// The vectorised passes, in each build that this machine supports, must match the formulas in
// plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "forecast/forecast.h"
#include "forecast/learned/builds.h"
#include "forecast/learned/random_model.h"
#include "forecast/learned/slow_model.h"

namespace drover::testing_support {
namespace {

constexpr double kClose = 1e-4;

bool close(double found, double expected) {
  return std::abs(found - expected) <= kClose * std::max(1.0, std::abs(expected));
}

Numbers random_numbers(size_t size, uint64_t seed, double strength = 1.0) {
  Numbers numbers;
  for (size_t i = 0; i < size; ++i) numbers.push_back(strength * spread_draw(seed, i));
  return numbers;
}

std::vector<float> floats(const Numbers& numbers) {
  return std::vector<float>(numbers.begin(), numbers.end());
}

// Odd sizes, none a multiple of the vector size.
ModelShape odd_shape(Emission emission, uint32_t workers) {
  ModelShape shape = default_shape(emission, workers);
  shape.latent = 5;
  shape.rnn = 13;
  shape.transition = 7;
  shape.worker_hidden = 19;
  shape.pooled_hidden = 11;
  shape.pooled = 9;
  shape.embedding = 3;
  shape.components = 4;
  shape.emission_hidden = 21;
  return shape;
}

WorkerView random_view(uint64_t seed) {
  WorkerView view;
  uint64_t at = 0;
  for (float& feature : view.features) feature = static_cast<float>(spread_draw(seed, ++at));
  for (float& anchor : view.anchors) {
    anchor = static_cast<float>(2.0 + 0.3 * spread_draw(seed, ++at));
  }
  view.scale = static_cast<float>(0.2 + 0.15 * spread_draw(seed, ++at));
  return view;
}

class Passes : public ::testing::TestWithParam<size_t> {
 protected:
  Build build() const { return builds().at(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Each, Passes, ::testing::Range(size_t{0}, builds().size()));

void check_state(const Build& build, const ModelWeights& weights, size_t steps, uint32_t samples,
                 uint64_t seed) {
  const ModelShape& shape = weights.shape;
  const size_t inputs = shape.emission == Emission::kShared ? shape.pooled : shape.workers;
  const auto state_space = build.state_space(weights);
  std::vector<Numbers> v;
  std::vector<std::vector<float>> projections;
  std::vector<const float*> window;
  for (size_t t = 0; t < steps; ++t) {
    v.push_back(random_numbers(inputs, draw({seed, t}), 2.0));
    projections.emplace_back(3 * shape.rnn);
    state_space->project(floats(v.back()), projections.back());
  }
  for (const auto& each : projections) window.push_back(each.data());
  std::vector<float> uniforms;
  for (size_t i = 0; i < (steps + 1) * shape.latent * samples; ++i) {
    uniforms.push_back(static_cast<float>(0.5 + 0.4999 * spread_draw(seed + 1, i)));
  }
  std::vector<float> z(size_t{shape.latent} * samples);
  state_space->sample(window, uniforms, samples, z);
  for (const uint32_t k : {0U, samples / 2, samples - 1}) {
    std::vector<Numbers> noise(steps + 1);
    for (size_t t = 0; t <= steps; ++t) {
      for (size_t j = 0; j < shape.latent; ++j) {
        noise[t].push_back(normal_quantile(double{uniforms[(t * shape.latent + j) * samples + k]}));
      }
    }
    const Numbers expected = slow_state(weights, v, noise);
    for (size_t j = 0; j < shape.latent; ++j) {
      EXPECT_TRUE(close(z[j * samples + k], expected[j]))
          << z[j * samples + k] << " " << expected[j];
    }
  }
}

TEST_P(Passes, StatesMatchTheFormulas) {
  for (const Emission emission : {Emission::kShared, Emission::kWorkers}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(seed);
      for (const ModelShape& shape : {default_shape(emission, 23), odd_shape(emission, 23)}) {
        const ModelWeights weights = random_model(shape, seed);
        check_state(build(), weights, shape.window, 64, seed);
        check_state(build(), weights, 3, 300, seed);
        check_state(build(), weights, 1, 1, seed);
        check_state(build(), weights, 0, 10, seed);
      }
    }
  }
}

TEST_P(Passes, AStepCanBeAmended) {
  const ModelWeights weights = random_model(odd_shape(Emission::kWorkers, 23), 3);
  const auto state_space = build().state_space(weights);
  std::vector<float> v = floats(random_numbers(23, 1));
  std::vector<float> amended(3 * weights.shape.rnn);
  std::vector<float> afresh(amended.size());
  state_space->project(v, amended);
  state_space->amend(7, 0.5F, amended);
  v[7] += 0.5F;
  state_space->project(v, afresh);
  for (size_t i = 0; i < afresh.size(); ++i) EXPECT_NEAR(amended[i], afresh[i], 1e-5);
}

TEST_P(Passes, QuantilesAreTheNormalDistributions) {
  // A state space that returns its noise: all weights are zero, and the scales are 1.
  ModelShape shape = default_shape(Emission::kShared, 1);
  ModelWeights weights = random_model(shape, 1, 0.0);
  for (Tensor& tensor : weights.tensors) {
    if (tensor.name != "drift_bias") continue;
    for (float& value : tensor.values) value = std::log(std::exp(0.999F) - 1.0F);
  }
  const auto state_space = build().state_space(weights);
  constexpr uint32_t kSamples = 1000;
  std::vector<float> uniforms;
  for (uint32_t i = 0; i < shape.latent * kSamples; ++i) {
    // From the far left to the far right.
    const double z = -5.3 + 10.6 * i / (shape.latent * kSamples - 1.0);
    uniforms.push_back(static_cast<float>(normal_cdf(z)));
  }
  std::vector<float> z(uniforms.size());
  state_space->sample({}, uniforms, kSamples, z);
  for (size_t i = 0; i < z.size(); ++i) {
    const double u = std::clamp<double>(uniforms[i], 0x1.0p-24, 1.0 - 0x1.0p-24);
    EXPECT_NEAR(z[i], normal_quantile(u), 2e-5) << u;
  }
}

TEST_P(Passes, PoolingMatchesTheFormulas) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    for (const ModelShape& shape :
         {default_shape(Emission::kShared, 90), odd_shape(Emission::kShared, 90)}) {
      const ModelWeights weights = random_model(shape, seed);
      const auto emission = build().shared_emission(weights);
      std::vector<Shown> all;
      WorkerBlock block;
      BlockOutcome outcome;
      emission->begin_pooling();
      for (WorkerId id = 0; id < 100; ++id) {  // the last ten are unknown
        const double off = 5.0 * spread_draw(seed, 1000 + id);
        all.push_back({id, random_view(draw({seed, id})), 2.0 + off, id % 3 == 0});
        const uint32_t at = block.count++;
        block.ids[at] = id;
        block.views[at] = all.back().view;
        outcome.log_time[at] = static_cast<float>(all.back().log_time);
        outcome.cut_short[at] = all.back().cut_short ? 1.0F : 0.0F;
        if (block.count < kBlock && id < 99) continue;
        emission->pool(block, outcome);
        block.count = 0;
      }
      std::vector<float> v(shape.pooled);
      emission->end_pooling(v);
      const Numbers expected = slow_pool(weights, all);
      for (size_t i = 0; i < v.size(); ++i) EXPECT_TRUE(close(v[i], expected[i]));
    }
  }
}

// All samples of a block's workers, compared with the expected ones.
template <typename Expected>
void check_samples(const WorkerBlock& block, const Forecast& found, Expected&& mixture_of) {
  const uint32_t bits = strata_bits(found.samples);
  for (uint32_t i = 0; i < block.count; ++i) {
    const Order order{block.orders.flip[i], block.orders.first_odd[i], block.orders.second_odd[i],
                      block.orders.turn[i], block.orders.jitter[i]};
    for (uint32_t k = 0; k < found.samples; k += 7) {
      bool near_edge = false;
      const double log = mixture_of(i, k).pick(double{uniform(order, k, bits)}, near_edge);
      if (near_edge) continue;
      ASSERT_TRUE(close(std::log(found.row(k)[i]), log))
          << i << " " << k << ": " << std::log(found.row(k)[i]) << " " << log;
    }
  }
}

Numbers state_at(const std::vector<float>& z, uint32_t samples, uint32_t k) {
  Numbers state;
  for (size_t j = 0; j < z.size() / samples; ++j) state.push_back(double{z[j * samples + k]});
  return state;
}

WorkerBlock random_block(uint32_t count, uint64_t seed) {
  WorkerBlock block;
  block.count = count;
  for (uint32_t i = 0; i < count; ++i) {
    block.ids[i] = i;
    block.views[i] = random_view(draw({seed, i}));
    block.orders.set(i, worker_order(seed, 1, i));
  }
  return block;
}

TEST_P(Passes, SharedSamplesMatchTheFormulas) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    for (const uint32_t samples : {1U, 32U, 100U}) {
      for (const ModelShape& shape :
           {default_shape(Emission::kShared, 60), odd_shape(Emission::kShared, 60)}) {
        const ModelWeights weights = random_model(shape, seed);
        const WorkerBlock block = random_block(seed % 2 == 0 ? 64 : 41, seed);
        const std::vector<float> z = floats(random_numbers(size_t{shape.latent} * samples, seed));
        Forecast found;
        found.resize(samples, block.count);
        build().shared_emission(weights)->sample(block, z,
                                                 {found.times.data(), block.count, samples});
        check_samples(block, found, [&](uint32_t i, uint32_t k) {
          return slow_shared(weights, block.ids[i], block.views[i], state_at(z, samples, k));
        });
      }
    }
  }
}

TEST_P(Passes, PublishedSamplesMatchTheFormulas) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    for (const uint32_t samples : {1U, 32U, 100U}) {
      for (const ModelShape& shape :
           {default_shape(Emission::kWorkers, 64), odd_shape(Emission::kSorted, 64)}) {
        const ModelWeights weights = random_model(shape, seed);
        WorkerBlock block = random_block(seed % 2 == 0 ? 64 : 41, seed);
        for (uint32_t i = 0; i < block.count; ++i) block.ids[i] = (i * 5) % 64;
        const std::vector<float> z = floats(random_numbers(size_t{shape.latent} * samples, seed));
        Forecast found;
        found.resize(samples, block.count);
        const auto emission = build().published_emission(weights);
        emission->set_state(z, samples);
        emission->sample(block, {found.times.data(), block.count, samples});
        check_samples(block, found, [&](uint32_t i, uint32_t k) {
          return slow_published(weights, block.ids[i], state_at(z, samples, k));
        });
      }
    }
  }
}

// With one state for all samples, a worker's samples are stratified over its mixture: the number
// between two quantiles is exact, up to one at each end.
TEST_P(Passes, SamplesAreStratifiedOverTheMixture) {
  constexpr uint32_t kSamples = 128;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const ModelShape shape = default_shape(Emission::kShared, 64);
    const ModelWeights weights = random_model(shape, seed, 1.5);
    const WorkerBlock block = random_block(64, seed);
    const Numbers state = random_numbers(shape.latent, seed);
    std::vector<float> z;
    for (const double each : state) z.insert(z.end(), kSamples, static_cast<float>(each));
    Forecast found;
    found.resize(kSamples, 64);
    build().shared_emission(weights)->sample(block, z, {found.times.data(), 64, kSamples});
    for (uint32_t i = 0; i < 64; ++i) {
      const SlowMixture mixture = slow_shared(weights, i, block.views[i], state);
      for (const double x : {mixture.mean[0] - mixture.scale[0], mixture.mean[0], mixture.mean[1],
                             mixture.mean[2] + 2.0 * mixture.scale[2]}) {
        uint32_t below = 0;
        for (uint32_t k = 0; k < kSamples; ++k) below += std::log(found.row(k)[i]) < x ? 1 : 0;
        // Every component contributes an interval of u, with an end that may cut a stratum.
        EXPECT_NEAR(below, mixture.cdf(x) * kSamples, shape.components + 0.1);
      }
    }
  }
}

TEST_P(Passes, TimesAreValidForAllWeights) {
  for (const double strength : {1e3, 1e10, 1e30}) {
    const ModelShape shape = default_shape(Emission::kShared, 64);
    const ModelWeights weights = random_model(shape, 1, strength);
    const WorkerBlock block = random_block(64, 1);
    std::vector<float> z = floats(random_numbers(shape.latent * 32, 1, strength));
    z[5] = std::nanf("");
    Forecast found;
    found.resize(32, 64);
    build().shared_emission(weights)->sample(block, z, {found.times.data(), 64, 32});
    const ModelShape other = default_shape(Emission::kWorkers, 64);
    const auto published = build().published_emission(random_model(other, 1, strength));
    std::vector<float> state = floats(random_numbers(other.latent * 32, 1, strength));
    state[5] = std::nanf("");
    Forecast of_published;
    of_published.resize(32, 64);
    published->set_state(state, 32);
    published->sample(block, {of_published.times.data(), 64, 32});
    for (const Forecast* forecast : {&found, &of_published}) {
      for (const float time : forecast->times) {
        ASSERT_TRUE(std::isnormal(time) && time > 0.0F) << time;
      }
    }
  }
}

}  // namespace
}  // namespace drover::testing_support
