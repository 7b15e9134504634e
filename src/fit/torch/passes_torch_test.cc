// Forecasting and training implement the same formulas separately: the vectorised passes, in
// each build that this machine supports, must match libtorch on random weights.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "fit/test_histories.h"
#include "fit/torch/reference_pass.h"
#include "fit/torch/slow_forecast.h"
#include "forecast/forecast.h"
#include "forecast/learned/builds.h"
#include "forecast/learned/learned_model.h"
#include "forecast/learned/random_model.h"
#include "forecast/learned/slow_model.h"

namespace drover {
namespace {

using testing_support::SlowMixture;

// Compares floats with doubles: relative, and for numbers near 0 by the size of their terms.
double tolerance(double expected) { return 1e-4 * std::max(0.1, std::abs(expected)); }

::testing::AssertionResult close(double found, double least, double most) {
  if (found >= least - tolerance(least) && found <= most + tolerance(most)) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << found << " instead of " << least << " to " << most;
}
::testing::AssertionResult close(double found, double expected) {
  return close(found, expected, expected);
}

constexpr uint32_t kWorkers = 23;
constexpr std::array kSeeds = {1, 2, 3};

// The defaults, and sizes that are not a multiple of the vector size.
std::vector<ModelShape> shapes_of(Emission emission) {
  const ModelShape defaults = default_shape(emission, kWorkers);
  ModelShape odd = defaults;
  odd.latent = 3;
  odd.window = 5;
  odd.rnn = 11;
  odd.transition = 7;
  odd.embedding = 2;
  odd.pooled_hidden = 13;
  odd.pooled = 9;
  odd.worker_hidden = 17;
  odd.components = 5;
  odd.emission_hidden = 19;
  return {defaults, odd};
}

std::vector<float> random_floats(size_t size, uint64_t seed, double strength = 1.0) {
  std::vector<float> numbers;
  for (size_t i = 0; i < size; ++i) {
    numbers.push_back(static_cast<float>(strength * spread_draw(seed, i)));
  }
  return numbers;
}

// Features of workers with some steps; the last workers are unknown to the model.
std::vector<WorkerView> some_views(uint32_t workers, uint64_t seed) {
  const History history = halved_history(workers, 20, seed);
  return views_before(history, history.steps());
}

SlowMixture to_slow(const Mixture& mixture) {
  SlowMixture slow;
  for (const Component& component : mixture) {
    slow.weight.push_back(component.weight);
    slow.mean.push_back(component.mean);
    slow.scale.push_back(component.scale);
  }
  return slow;
}

// The log time at quantile u of a mixture. In the tail of a component, especially one with a small
// weight, a rounding error of u changes the value much, so the result is an interval.
struct Picked {
  double least = 0.0;
  double most = 0.0;
  bool near_edge = false;  // a rounding error may choose another component
};
Picked pick(const SlowMixture& mixture, float u) {
  constexpr double kRounding = 1e-6;
  Picked picked;
  mixture.pick(double{u}, picked.near_edge);
  bool ignored = false;
  picked.least = mixture.pick(u - kRounding, ignored);
  picked.most = mixture.pick(u + kRounding, ignored);
  return picked;
}

class TorchAndPasses : public ::testing::TestWithParam<size_t> {
 protected:
  Build build() const { return builds().at(GetParam()); }

  // Runs with each shape of an emission and several random models.
  template <typename Check>
  void with_models(Emission emission, Check&& check) {
    for (const ModelShape& shape : shapes_of(emission)) {
      for (const uint64_t seed : kSeeds) {
        SCOPED_TRACE(::testing::Message() << build().name << " " << name_of(emission) << ", latent "
                                          << shape.latent << ", seed " << seed);
        check(random_model(shape, seed), seed);
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Each, TorchAndPasses, ::testing::Range(size_t{0}, builds().size()));

TEST_P(TorchAndPasses, AgreeAboutStates) {
  const auto check = [&](const ModelWeights& weights, uint64_t seed) {
    constexpr uint32_t kSamples = 150;
    const ModelShape& shape = weights.shape;
    const size_t inputs = weights.tensor("gru_input").columns;
    const std::vector<float> v = random_floats(shape.window * inputs, seed, 2.0);
    const auto state_space = build().state_space(weights);
    std::vector<float> projections(size_t{shape.window} * 3 * shape.rnn);
    std::vector<const float*> window;
    for (size_t t = 0; t < shape.window; ++t) {
      const auto projection = std::span(projections).subspan(t * 3 * shape.rnn, 3 * shape.rnn);
      state_space->project(std::span(v).subspan(t * inputs, inputs), projection);
      window.push_back(projection.data());
    }
    const size_t columns = (shape.window + size_t{1}) * shape.latent;
    std::vector<float> uniforms = random_floats(columns * kSamples, seed + 100, 0.4999);
    for (float& u : uniforms) u += 0.5F;
    std::vector<float> z(size_t{shape.latent} * kSamples);
    state_space->sample(window, uniforms, kSamples, z);
    for (const uint32_t k : {0U, kSamples / 2, kSamples - 1}) {
      std::vector<float> noise;
      for (size_t column = 0; column < columns; ++column) {
        const double u = uniforms[column * kSamples + k];
        noise.push_back(static_cast<float>(normal_quantile(u)));
      }
      const size_t within = size_t{shape.window} * shape.latent;
      const std::span<const float> all(noise);
      const auto expected =
          ReferencePass(weights).states(v, all.first(within), all.subspan(within));
      for (size_t j = 0; j < shape.latent; ++j) {
        EXPECT_TRUE(close(z[j * kSamples + k], expected.next[j])) << "sample " << k;
      }
    }
  };
  for (const Emission emission : {Emission::kShared, Emission::kWorkers, Emission::kSorted}) {
    with_models(emission, check);
  }
}

TEST_P(TorchAndPasses, AgreeAboutWhatAStepLookedLike) {
  with_models(Emission::kShared, [&](const ModelWeights& weights, uint64_t seed) {
    constexpr uint32_t kThere = kBlock + 6;
    const std::vector<WorkerView> views = some_views(kThere, seed);
    const History next = halved_history(kThere, 4, seed + 1);  // a worker is absent in the last one
    const std::span<const PastTime> row = next.row(3);
    const auto emission = build().shared_emission(weights);
    WorkerBlock block;
    BlockOutcome outcome;
    emission->begin_pooling();
    for (WorkerId id = 0; id < kThere; ++id) {
      if (row[id].known != Known::kNothing) {
        const uint32_t at = block.count++;
        block.ids[at] = id;
        block.views[at] = views[id];
        outcome.log_time[at] = row[id].log_time;
        outcome.cut_short[at] = row[id].known == Known::kLonger ? 1.0F : 0.0F;
      }
      if (block.count < kBlock && id + 1 < kThere) continue;
      emission->pool(block, outcome);
      block.count = 0;
    }
    std::vector<float> v(weights.shape.pooled);
    emission->end_pooling(v);
    const std::vector<float> expected = ReferencePass(weights).pooled(views, row);
    for (size_t i = 0; i < v.size(); ++i) EXPECT_TRUE(close(v[i], expected[i])) << "v " << i;
  });
}

// The network's outputs for a worker determine its samples, each of which is a known quantile of
// the mixture.
TEST_P(TorchAndPasses, AgreeAboutWorkersOfTheSharedEmission) {
  with_models(Emission::kShared, [&](const ModelWeights& weights, uint64_t seed) {
    constexpr uint32_t kSamples = 96;
    const uint32_t there = seed % 2 == 0 ? kBlock : kWorkers + 8;
    const std::vector<WorkerView> views = some_views(there, seed);
    WorkerBlock block;
    block.count = there;
    for (uint32_t i = 0; i < there; ++i) {
      block.ids[i] = i;
      block.views[i] = views[i];
      block.orders.set(i, worker_order(seed, 1, i));
    }
    const size_t latent = weights.shape.latent;
    const std::vector<float> z = random_floats(latent * kSamples, seed);
    Forecast found;
    found.resize(kSamples, there);
    build().shared_emission(weights)->sample(block, z, {found.times.data(), there, kSamples});
    const std::vector<float> outputs = ReferencePass(weights).worker_outputs(views);
    const size_t each = worker_outputs(weights.shape);
    for (uint32_t k = 0; k < kSamples; ++k) {
      std::vector<float> state;
      for (size_t j = 0; j < latent; ++j) state.push_back(z[j * kSamples + k]);
      for (uint32_t i = 0; i < there; ++i) {
        const SlowMixture mixture = to_slow(
            mixture_of(weights.shape, std::span(outputs).subspan(i * each, each), views[i], state));
        const Picked expected =
            pick(mixture, uniform(worker_order(seed, 1, i), k, strata_bits(kSamples)));
        if (expected.near_edge) continue;
        ASSERT_TRUE(close(std::log(double{found.row(k)[i]}), expected.least, expected.most))
            << i << " " << k;
      }
    }
  });
}

// With one state for all samples, two of them determine the mean and scale of a normal
// distribution.
TEST_P(TorchAndPasses, AgreeAboutMeanAndScaleOfThePublishedEmissions) {
  const auto check = [&](const ModelWeights& weights, uint64_t seed) {
    constexpr uint32_t kSamples = 128;
    const size_t latent = weights.shape.latent;
    const std::vector<float>& normal = weights.tensor("normal_mean").values;
    const double unit = weights.tensor("normal_scale").values[0];
    WorkerBlock block;
    block.count = kWorkers;
    for (uint32_t i = 0; i < kWorkers; ++i) {
      block.ids[i] = kWorkers - 1 - i;
      block.orders.set(i, worker_order(seed, 1, i));
    }
    const auto emission = build().published_emission(weights);
    for (uint64_t trial = 0; trial < 4; ++trial) {
      const std::vector<float> state = random_floats(latent, draw({seed, trial}), 2.0);
      std::vector<float> z;
      for (const float each : state) z.insert(z.end(), kSamples, each);
      Forecast found;
      found.resize(kSamples, kWorkers);
      emission->set_state(z, kSamples);
      emission->sample(block, {found.times.data(), kWorkers, kSamples});
      const ReferencePass::Emitted expected = ReferencePass(weights).emitted(state);
      for (uint32_t i = 0; i < kWorkers; ++i) {
        const WorkerId id = block.ids[i];
        const auto uniform_of = [&](uint32_t k) {
          return uniform(worker_order(seed, 1, i), k, strata_bits(kSamples));
        };
        const auto value = [&](uint32_t k) {
          return (std::log(double{found.row(k)[i]}) - normal[id]) / unit;
        };
        uint32_t low = 0;
        uint32_t high = 0;
        for (uint32_t k = 1; k < kSamples; ++k) {
          if (uniform_of(k) < uniform_of(low)) low = k;
          if (uniform_of(k) > uniform_of(high)) high = k;
        }
        const double from = normal_quantile(double{uniform_of(low)});
        const double to = normal_quantile(double{uniform_of(high)});
        const double scale = (value(high) - value(low)) / (to - from);
        EXPECT_TRUE(close(scale, expected.scale[id])) << "scale of " << id;
        EXPECT_TRUE(close(value(low) - from * scale, expected.mean[id])) << "mean of " << id;
      }
    }
  };
  with_models(Emission::kWorkers, check);
  with_models(Emission::kSorted, check);
}

// End to end, in the build that is used: learning from a history, drawing, and forecasting for
// various workers.
TEST(TorchAndLearnedModel, AgreeAboutForecasts) {
  constexpr uint32_t kSamples = 24;
  for (const Emission emission : {Emission::kShared, Emission::kWorkers, Emission::kSorted}) {
    for (const ModelShape& shape : shapes_of(emission)) {
      for (const uint64_t seed : kSeeds) {
        SCOPED_TRACE(::testing::Message() << name_of(emission) << ", seed " << seed);
        const ModelWeights weights = random_model(shape, seed);
        // The sorted model's outputs are ranks. Their order equals that of the fit only if all
        // workers have arrived.
        const History history = emission == Emission::kSorted ? wavy_history(kWorkers, 30, seed)
                                                              : halved_history(kWorkers, 30, seed);
        const Step now = history.steps();
        LearnedModel model(std::make_shared<const ModelWeights>(weights), seed);
        for (size_t t = 0; t < now; ++t) model.learn(t, history.row(t));
        std::vector<WorkerId> alive(kWorkers);
        std::iota(alive.begin(), alive.end(), 0U);
        Forecast found;
        model.forecast(now, alive, kSamples, found);

        std::vector<float> v;
        for (size_t t = now - shape.window; t < now; ++t) {
          const auto seen = encoder_input(weights, views_before(history, t), history.row(t));
          v.insert(v.end(), seen.begin(), seen.end());
        }
        const std::vector<WorkerView> views = views_before(history, now);
        const uint32_t bits = strata_bits(kSamples);
        for (uint32_t k = 0; k < kSamples; ++k) {
          std::vector<float> noise;
          for (uint32_t column = 0; column < (shape.window + 1) * shape.latent; ++column) {
            const double u = uniform(state_order(seed, now, column), k, bits);
            noise.push_back(static_cast<float>(normal_quantile(u)));
          }
          const size_t within = size_t{shape.window} * shape.latent;
          const std::span<const float> all(noise);
          const auto z =
              ReferencePass(weights).states(v, all.first(within), all.subspan(within)).next;
          const std::vector<Mixture> mixtures = mixtures_of(weights, views, z);
          std::vector<double> least;
          std::vector<double> most;
          bool near_edge = false;
          for (WorkerId i = 0; i < kWorkers; ++i) {
            const Picked picked =
                pick(to_slow(mixtures[i]), uniform(worker_order(seed, now, i), k, bits));
            least.push_back(picked.least);
            most.push_back(picked.most);
            near_edge = near_edge || picked.near_edge;
          }
          if (near_edge) continue;
          if (emission == Emission::kSorted) {
            std::sort(least.begin(), least.end());
            std::sort(most.begin(), most.end());
          }
          for (WorkerId i = 0; i < kWorkers; ++i) {
            ASSERT_TRUE(close(std::log(double{found.row(k)[i]}), least[i], most[i]))
                << i << " " << k;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace drover
