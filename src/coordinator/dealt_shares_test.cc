#include "coordinator/dealt_shares.h"

#include <gtest/gtest.h>

#include <array>

namespace drover {
namespace {

using Shares = std::vector<std::pair<WorkerId, Share>>;
constexpr std::array<WorkerId, 3> kAll = {0, 2, 5};

TEST(DealtShares, RangesAreConsecutive) {
  DealtShares shares;
  EXPECT_EQ(shares.deal(1, kAll, std::array{8u, 4u, 12u}, 24),
            (Shares{{0, {.from = 1, .first = 0, .count = 8, .total = 24}},
                    {2, {.from = 1, .first = 8, .count = 4, .total = 24}},
                    {5, {.from = 1, .first = 12, .count = 12, .total = 24}}}));
}

TEST(DealtShares, ReturnsOnlyChangedShares) {
  DealtShares shares;
  shares.deal(1, kAll, std::array{8u, 4u, 12u}, 24);
  EXPECT_EQ(shares.deal(2, kAll, std::array{8u, 4u, 12u}, 24), Shares{});
  EXPECT_EQ(shares.deal(3, kAll, std::array{8u, 6u, 10u}, 24),
            (Shares{{2, {.from = 3, .first = 8, .count = 6, .total = 24}},
                    {5, {.from = 3, .first = 14, .count = 10, .total = 24}}}));
  EXPECT_EQ(shares.deal(4, kAll, std::array{6u, 8u, 10u}, 24).size(), 2u)
      << "the range of worker 5 has not changed";
  EXPECT_EQ(shares.deal(5, kAll, std::array{6u, 8u, 10u}, 25).size(), 3u);
}

TEST(DealtShares, TheNextIncarnationOfALostWorkerGetsItsShare) {
  DealtShares shares;
  shares.deal(1, kAll, std::array{8u, 4u, 12u}, 24);
  shares.forget(2);
  EXPECT_EQ(shares.deal(2, kAll, std::array{8u, 4u, 12u}, 24),
            (Shares{{2, {.from = 2, .first = 8, .count = 4, .total = 24}}}));
}

}  // namespace
}  // namespace drover
