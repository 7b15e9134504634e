// GradientSum gives the weighted mean in both orders, bitwise the same for any order of arrival
// when summing by worker, and keeps no more memory than documented.
#include "shard/gradient_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace drover {
namespace {

struct Contribution {
  WorkerId worker;
  uint32_t samples;
  std::vector<float> gradient = {};
};

SharedBuffer buffer_of(const std::vector<float>& values) {
  auto buffer = std::make_shared<FloatBuffer>(values.size());
  std::copy(values.begin(), values.end(), buffer->data());
  return buffer;
}

void add_all(GradientSum& sum, const std::vector<Contribution>& contributions) {
  for (const Contribution& each : contributions) {
    sum.add(each.worker, each.samples, buffer_of(each.gradient));
  }
}

std::vector<float> mean_of(const GradientSum& sum) {
  std::vector<float> mean(sum.length());
  sum.write_mean(0, mean);
  return mean;
}

std::vector<float> mean_of(SumOrder order, const std::vector<Contribution>& contributions) {
  BufferPool pool;
  GradientSum sum(order, contributions.front().gradient.size(), &pool);
  add_all(sum, contributions);
  return mean_of(sum);
}

std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  bits.reserve(values.size());
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

std::vector<Contribution> random_contributions(std::mt19937_64& random, size_t length) {
  std::vector<Contribution> all(1 + random() % 12);
  std::vector<WorkerId> ids(40);
  std::iota(ids.begin(), ids.end(), WorkerId{0});
  std::shuffle(ids.begin(), ids.end(), random);
  std::normal_distribution<float> value;
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = {.worker = ids[i], .samples = static_cast<uint32_t>(1 + random() % 200)};
    for (size_t j = 0; j < length; ++j) all[i].gradient.push_back(value(random));
  }
  return all;
}

constexpr SumOrder kOrders[] = {SumOrder::kArrival, SumOrder::kWorker};

TEST(GradientSum, WeighsBySamples) {
  for (const SumOrder order : kOrders) {
    // (10 * 1 + 30 * 5) / 40 = 4, (10 * 2 + 30 * -2) / 40 = -1; both exact in floats.
    EXPECT_EQ(mean_of(order, {{0, 10, {1.0F, 2.0F}}, {1, 30, {5.0F, -2.0F}}}),
              (std::vector<float>{4.0F, -1.0F}));
  }
}

TEST(GradientSum, ListsContributorsInOrderOfArrival) {
  for (const SumOrder order : kOrders) {
    BufferPool pool;
    GradientSum sum(order, 1, &pool);
    add_all(sum, {{7, 3, {1.0F}}, {2, 4, {1.0F}}, {5, 1, {1.0F}}});
    EXPECT_EQ(sum.workers(), (std::vector<WorkerId>{7, 2, 5}));
    EXPECT_EQ(sum.contributors(), 3U);
    EXPECT_EQ(sum.samples(), 8U);
    EXPECT_TRUE(sum.has(2));
    EXPECT_FALSE(sum.has(3));

    sum.reset();
    EXPECT_EQ(sum.contributors(), 0U);
    EXPECT_EQ(sum.samples(), 0U);
    EXPECT_FALSE(sum.has(2));
    add_all(sum, {{7, 2, {9.0F}}});
    EXPECT_EQ(mean_of(sum), std::vector<float>{9.0F});
  }
}

TEST(GradientSum, IsTheGradientItselfIfThereIsOnlyOne) {
  // s g / s is not always g in floats. A single gradient must not be rounded.
  const std::vector<float> gradient = {0.1F, 1.0F / 3.0F, 1e-40F, -3.4e38F};
  for (const SumOrder order : kOrders) {
    for (uint32_t samples = 1; samples < 100; ++samples) {
      EXPECT_EQ(bits_of(mean_of(order, {{3, samples, gradient}})), bits_of(gradient));
    }
  }
}

TEST(GradientSum, OfEqualGradientsAndWeightsIsExact) {
  const std::vector<float> gradient = {0.1F, 1.0F / 3.0F, 12345.67F};
  for (const SumOrder order : kOrders) {
    EXPECT_EQ(mean_of(order, {{0, 7, gradient}, {1, 7, gradient}}), gradient);
  }
}

TEST(GradientSum, AgreesWithTheMeanInDoublePrecision) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const size_t length = 1 + random() % 100;
    const std::vector<Contribution> all = random_contributions(random, length);
    for (const SumOrder order : kOrders) {
      const std::vector<float> mean = mean_of(order, all);
      for (size_t i = 0; i < length; ++i) {
        double sum = 0.0;
        double weights = 0.0;
        double largest = 0.0;
        for (const Contribution& each : all) {
          sum += each.samples * static_cast<double>(each.gradient[i]);
          weights += each.samples;
          largest = std::max(largest, std::abs(static_cast<double>(each.gradient[i])));
        }
        ASSERT_NEAR(mean[i], sum / weights, 1e-6 * largest);
      }
    }
  }
}

TEST(GradientSum, ByWorkerGivesTheSameBitsForAnyOrderOfArrival) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<Contribution> all = random_contributions(random, 1 + random() % 50);
    const auto first = bits_of(mean_of(SumOrder::kWorker, all));
    for (int i = 0; i < 5; ++i) {
      std::shuffle(all.begin(), all.end(), random);
      ASSERT_EQ(bits_of(mean_of(SumOrder::kWorker, all)), first);
    }
    std::sort(all.begin(), all.end(),
              [](const Contribution& a, const Contribution& b) { return a.worker < b.worker; });
    ASSERT_EQ(bits_of(mean_of(SumOrder::kArrival, all)), first) << "arrival in order of workers";
  }
}

TEST(GradientSum, InChunksEqualsTheWhole) {
  std::mt19937_64 random(1);
  const std::vector<Contribution> all = random_contributions(random, 101);
  for (const SumOrder order : kOrders) {
    BufferPool pool;
    GradientSum sum(order, 101, &pool);
    add_all(sum, all);
    for (const size_t chunk : {1U, 16U, 50U, 101U}) {
      std::vector<float> mean(101);
      for (size_t begin = 0; begin < 101; begin += chunk) {
        sum.write_mean(begin, std::span(mean).subspan(begin, std::min<size_t>(chunk, 101 - begin)));
      }
      EXPECT_EQ(bits_of(mean), bits_of(mean_of(sum))) << chunk;
    }
  }
}

TEST(GradientSum, HoldsOneBufferWhenSummingInOrderOfArrival) {
  BufferPool pool;
  GradientSum sum(SumOrder::kArrival, 8, &pool);
  std::set<const FloatBuffer*> seen;
  for (WorkerId worker = 0; worker < 20; ++worker) {
    SharedBuffer buffer = pool.take(8);
    seen.insert(buffer.get());
    std::fill_n(buffer->data(), 8, 1.0F);
    sum.add(worker, 1, std::move(buffer));
  }
  EXPECT_LE(seen.size(), 3U);  // one kept, one being computed, one being received
}

TEST(GradientSum, ReturnsTheSquaresAndRefusesValuesThatAreNotFinite) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const SumOrder order : kOrders) {
    BufferPool pool;
    GradientSum sum(order, 2, &pool);
    EXPECT_TRUE(std::isnan(sum.add(3, 1, buffer_of({1.0F, kNan})).value()));
    EXPECT_EQ(sum.add(1, 1, buffer_of({3.0F, 4.0F})), 25.0);
    EXPECT_TRUE(std::isnan(sum.add(2, 1, buffer_of({kNan, 4.0F})).value()));
    EXPECT_EQ(sum.add(4, 1, buffer_of({1.0F, 0.0F})), 1.0);
    EXPECT_EQ(sum.workers(), (std::vector<WorkerId>{1, 4}));
    EXPECT_EQ(mean_of(sum), (std::vector<float>{2.0F, 2.0F}));
  }
  // Finite by itself, but the sum would not be.
  BufferPool pool;
  GradientSum sum(SumOrder::kArrival, 1, &pool);
  sum.add(0, 1, buffer_of({kLargest}));
  EXPECT_TRUE(std::isnan(sum.add(1, 1, buffer_of({kLargest})).value()));
  EXPECT_EQ(mean_of(sum), std::vector<float>{kLargest});
}

TEST(GradientSum, IsUnchangedIfItWouldOverflow) {
  constexpr float kLarge = 2e38F;
  BufferPool pool;
  GradientSum sum(SumOrder::kArrival, 2, &pool);
  EXPECT_TRUE(std::isfinite(sum.add(0, 1, buffer_of({kLarge, 1.0F})).value()));
  EXPECT_TRUE(std::isfinite(sum.add(1, 1, buffer_of({0.0F, 1.0F})).value()));
  EXPECT_TRUE(std::isnan(sum.add(2, 1, buffer_of({kLarge, 1.0F})).value()));
  EXPECT_TRUE(std::isfinite(sum.add(3, 1, buffer_of({-kLarge, 1.0F})).value()));
  EXPECT_EQ(mean_of(sum), (std::vector<float>{0.0F, 1.0F}));
}

// The sum of gradients in their workers' memory, of which some are refused, must be bitwise equal
// to the sum of only the accepted ones, sent as copies.
TEST(GradientSum, InPlaceIsBitwiseTheSameWithRefusedGradients) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<Contribution> all = random_contributions(random, 1 + random() % 200);
    const std::atomic<uint64_t> word = 1;
    BufferPool pool;
    GradientSum in_place(SumOrder::kArrival, all.front().gradient.size(), &pool);
    std::vector<Contribution> good;
    for (Contribution& each : all) {
      const bool bad = random() % 3 == 0;
      const bool gone = !bad && random() % 4 == 0;
      const bool sent = random() % 10 == 0;  // by a worker on another host
      if (bad) each.gradient[random() % each.gradient.size()] = kNan;
      const SharedBuffer buffer = sent ? buffer_of(each.gradient)
                                       : std::make_shared<FloatBuffer>(
                                             each.gradient.data(), each.gradient.size(),
                                             std::make_shared<int>(), Stamp{&word, gone ? 0u : 1u});
      const auto squares = in_place.add(each.worker, each.samples, buffer);
      ASSERT_EQ(squares.has_value(), sent || !gone);
      if (squares) {
        ASSERT_EQ(std::isfinite(*squares), !bad);
      }
      if (squares && !bad) good.push_back(each);
    }
    ASSERT_EQ(in_place.contributors(), good.size());
    if (good.empty()) continue;
    ASSERT_EQ(bits_of(mean_of(in_place)), bits_of(mean_of(SumOrder::kArrival, good)));
  }
}

// A worker that continues first changes the word that marks its gradient as overwritten. Here it
// does so before the sum reads the gradient.
TEST(GradientSum, DoesNotAddAGradientThatItsOwnerHasOverwritten) {
  for (const SumOrder order : kOrders) {
    BufferPool pool;
    GradientSum sum(order, 2, &pool);
    std::vector<float> theirs = {1.0F, 2.0F};
    std::atomic<uint64_t> word = 7;
    const auto view = [&] {
      return std::make_shared<FloatBuffer>(theirs.data(), 2, std::make_shared<int>(),
                                           Stamp{&word, 7});
    };
    EXPECT_EQ(sum.add(0, 1, view()), 5.0);
    word = 8;
    EXPECT_EQ(sum.add(1, 1, view()), std::nullopt);
    theirs = {9.0F, 9.0F};  // the added gradient was copied
    EXPECT_EQ(mean_of(sum), (std::vector<float>{1.0F, 2.0F}));
    EXPECT_EQ(sum.contributors(), 1U);
  }
}

TEST(GradientSum, ReleasesItsBuffers) {
  for (const SumOrder order : kOrders) {
    BufferPool pool;
    GradientSum sum(order, 1, &pool);
    std::vector<std::weak_ptr<FloatBuffer>> given;
    for (WorkerId worker = 0; worker < 5; ++worker) {
      SharedBuffer buffer = buffer_of({1.0F});
      given.push_back(buffer);
      sum.add(worker, 1, std::move(buffer));
    }
    sum.reset();
    for (const auto& each : given) EXPECT_TRUE(each.expired());
  }
}

TEST(GradientSumDeathTest, ChecksItsRequirements) {
  BufferPool pool;
  GradientSum sum(SumOrder::kArrival, 2, &pool);
  std::vector<float> out(2);
  EXPECT_DEATH(sum.write_mean(0, out), "internal error") << "nothing to average";
  sum.add(1, 1, buffer_of({1.0F, 2.0F}));
  EXPECT_DEATH(sum.add(1, 1, buffer_of({1.0F, 2.0F})), "internal error") << "twice";
  EXPECT_DEATH(sum.add(2, 0, buffer_of({1.0F, 2.0F})), "internal error") << "no samples";
  EXPECT_DEATH(sum.add(2, 1, buffer_of({1.0F})), "internal error") << "wrong length";
  EXPECT_DEATH(sum.write_mean(1, out), "internal error") << "beyond the end";
}

// Beyond a limit a gradient is clipped or not added. Up to the limit it is added unchanged.
TEST(GradientSum, LimitsTheNormsOfGradients) {
  for (const SumOrder order : {SumOrder::kArrival, SumOrder::kWorker}) {
    for (const double clip_to : {0.0, 2.0}) {
      BufferPool pool;
      GradientSum sum(order, 4, &pool);
      const NormLimit limit{.squares = 16.0, .clip_to = clip_to};
      const auto add = [&](WorkerId worker, float value) {
        SharedBuffer gradient = pool.take(4);
        std::fill_n(gradient->data(), 4, value);
        return *sum.add(worker, 1, std::move(gradient), limit);
      };
      EXPECT_EQ(add(0, 2.0F), 16.0);
      EXPECT_EQ(add(1, -100.0F), 40'000.0) << "the norm before clipping";
      EXPECT_EQ(add(2, 1.0F), 4.0);
      std::array<float, 4> mean{};
      sum.write_mean(0, mean);
      EXPECT_EQ(sum.contributors(), clip_to > 0.0 ? 3u : 2u);
      EXPECT_FLOAT_EQ(mean[3], clip_to > 0.0 ? 2.0F / 3 : 1.5F);
    }
  }
}

}  // namespace
}  // namespace drover
