// The steps of a run of any length are in a bounded number of buckets, each in the right one.
#include "view/buckets.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace drover {
namespace {

struct Steps {
  std::vector<Step> steps;
  void merge(const Steps& later) {
    steps.insert(steps.end(), later.steps.begin(), later.steps.end());
  }
};

TEST(Buckets, HoldEveryStepOnceAndInOrder) {
  for (const size_t limit : {1u, 2u, 3u, 8u, 10u}) {
    SCOPED_TRACE(limit);
    Buckets<Steps> buckets(limit);
    for (Step step = 0; step < 100; ++step) {
      buckets.at(step, {}).steps.push_back(step);
      ASSERT_LE(buckets.all().size(), limit);
      for (size_t i = 0; i < buckets.all().size(); ++i) {
        std::vector<Step> expected;
        for (Step each = i * buckets.per(); each <= step && each < (i + 1) * buckets.per(); ++each)
          expected.push_back(each);
        ASSERT_EQ(buckets.all()[i].steps, expected) << "after step " << step;
      }
    }
  }
}

TEST(Buckets, AreAsSmallAsTheLimitAllows) {
  Buckets<Steps> buckets(10);
  buckets.at(9, {});
  EXPECT_EQ(buckets.per(), 1u);
  buckets.at(10, {});
  EXPECT_EQ(buckets.per(), 2u);
  buckets.at(79, {});
  EXPECT_EQ(buckets.per(), 8u);
}

}  // namespace
}  // namespace drover
