// Ranks in a histogram are those of the sorted times, to within half a percent.
#include "view/time_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/chance.h"

namespace drover {
namespace {

TEST(TimeHistogram, KnowsEveryRank) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    TimeHistogram histogram;
    std::vector<double> times;
    for (uint64_t i = 0; i < 1 + seed * 10; ++i) {
      // From microseconds to hours.
      const double time_s = std::exp(unit_interval(draw({seed, i})) * 22.0 - 13.0);
      histogram.add(from_seconds(time_s));
      times.push_back(seconds(from_seconds(time_s)));
    }
    std::sort(times.begin(), times.end());
    ASSERT_EQ(histogram.count(), times.size());
    for (uint64_t rank = 1; rank <= times.size(); ++rank) {
      const double told = histogram.at_rank(rank);
      EXPECT_NEAR(told / times[rank - 1], 1.0, 0.006) << "rank " << rank;
      EXPECT_GE(histogram.up_to(told), rank);
    }
    EXPECT_EQ(histogram.up_to(times.front() * 0.98), 0u);
  }
}

TEST(TimeHistogram, TakesNoTimeAtAll) {
  TimeHistogram histogram;
  histogram.add(Duration::zero());
  EXPECT_NEAR(histogram.at_rank(1), 1e-9, 1e-10);
}

}  // namespace
}  // namespace drover
