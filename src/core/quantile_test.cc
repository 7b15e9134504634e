#include "core/quantile.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace drover {
namespace {

// 100, 99, ..., 1
std::vector<int> hundred() {
  std::vector<int> values(100);
  std::iota(values.rbegin(), values.rend(), 1);
  return values;
}

TEST(Quantile, IsTheValueAtTheNearestIndex) {
  EXPECT_EQ(quantile(hundred(), 0.0), 1);
  EXPECT_EQ(quantile(hundred(), 1.0), 100);
  EXPECT_EQ(quantile(hundred(), 0.1), 11) << "index 9.9";
  EXPECT_EQ(quantile(hundred(), 0.9), 90) << "index 89.1";
  EXPECT_EQ(quantile(std::vector<double>{7.5}, 0.3), 7.5);
  EXPECT_EQ(quantile(std::vector<float>{3, 1}, 0.5), 3.0F) << "the median of two is the greater";
}

TEST(Percentile, IsTheNearestRank) {
  EXPECT_EQ(percentile(hundred(), 0), 1);
  EXPECT_EQ(percentile(hundred(), 50), 50);
  EXPECT_EQ(percentile(hundred(), 99), 99);
  EXPECT_EQ(percentile(hundred(), 100), 100);
  std::vector<int> three = {30, 10, 20};
  EXPECT_EQ(percentile(three, 50), 20);
  EXPECT_EQ(percentile(three, 33), 10);
  EXPECT_EQ(percentile(three, 34), 20);
  EXPECT_EQ(percentile(three, 90), 30);
}

TEST(ValueInOrder, ReordersTheValues) {
  std::vector<int> values = {3, 1, 2};
  EXPECT_EQ(value_in_order(values, 1), 2);
  EXPECT_EQ(values, (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace drover
