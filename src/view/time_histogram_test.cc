// Ranks in a histogram match the sorted times, exactly or within half a bin.
#include "view/time_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/random_draw.h"

namespace drover {
namespace {

TEST(TimeHistogram, HasEveryRank) {
  for (const size_t exact_max : {0u, 50u, 1000u}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(std::to_string(exact_max) + ", seed " + std::to_string(seed));
      TimeHistogram histogram(exact_max);
      std::vector<Duration> times;
      for (uint64_t i = 0; i < 1 + seed * 10; ++i) {
        // From microseconds to hours.
        times.push_back(from_seconds(std::exp(unit_interval(draw({seed, i})) * 22.0 - 13.0)));
        histogram.add(times.back());
      }
      std::sort(times.begin(), times.end());
      ASSERT_EQ(histogram.count(), times.size());
      EXPECT_EQ(histogram.is_exact(), times.size() <= exact_max);
      for (uint64_t rank = 1; rank <= times.size(); ++rank) {
        const Duration at_rank = histogram.at_rank(rank);
        const double error = seconds(at_rank) / seconds(times[rank - 1]) - 1.0;
        EXPECT_LE(std::abs(error), histogram.is_exact() ? 0.0 : 0.0051) << "rank " << rank;
        EXPECT_GE(histogram.up_to(at_rank, false), rank);
      }
      EXPECT_EQ(histogram.up_to(times.front() * 98 / 100, true), 0u);
      EXPECT_EQ(histogram.percentile(50), histogram.at_rank((times.size() + 1) / 2));
      EXPECT_EQ(histogram.percentile(100), histogram.at_rank(times.size()));
    }
  }
}

TEST(TimeHistogram, CountsAWholeBinOnlyOnRequest) {
  TimeHistogram histogram;
  histogram.add(from_seconds(1.0001));
  EXPECT_EQ(histogram.up_to(from_seconds(1.00005), false), 0u);
  EXPECT_EQ(histogram.up_to(from_seconds(1.00005), true), 1u);
}

TEST(TimeHistogram, AcceptsZeroTimes) {
  for (const size_t exact_max : {0u, 10u}) {
    TimeHistogram histogram(exact_max);
    histogram.add(Duration::zero());
    histogram.add(from_seconds(1.0));
    histogram.add(from_seconds(-1.0));
    EXPECT_EQ(histogram.at_rank(2), Duration::zero());
    EXPECT_NEAR(seconds(histogram.at_rank(3)), 1.0, 0.01);
    EXPECT_EQ(histogram.up_to(Duration::zero(), true), 2u);
  }
}

TEST(SecondsHistogram, BoundsAreInclusive) {
  constexpr std::array kBounds = {1.0, 2.0};
  SecondsHistogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 1.5, 3.0}) histogram.add(value);
  EXPECT_EQ(histogram.counts, (std::vector<uint64_t>{2, 1, 1}));
  EXPECT_EQ(histogram.sum, 6.0);
}

}  // namespace
}  // namespace drover
