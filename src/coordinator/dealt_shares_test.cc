#include "coordinator/dealt_shares.h"

#include <gtest/gtest.h>

#include <array>

namespace drover {
namespace {

using Told = std::vector<std::pair<WorkerId, Share>>;
constexpr std::array<WorkerId, 3> kAll = {0, 2, 5};

TEST(DealtShares, StretchesFollowEachOther) {
  DealtShares shares;
  EXPECT_EQ(shares.deal(1, kAll, std::array{8u, 4u, 12u}, 24),
            (Told{{0, {.from = 1, .first = 0, .count = 8, .total = 24}},
                  {2, {.from = 1, .first = 8, .count = 4, .total = 24}},
                  {5, {.from = 1, .first = 12, .count = 12, .total = 24}}}));
}

TEST(DealtShares, OnlyWhatChangesIsTold) {
  DealtShares shares;
  shares.deal(1, kAll, std::array{8u, 4u, 12u}, 24);
  EXPECT_EQ(shares.deal(2, kAll, std::array{8u, 4u, 12u}, 24), Told{});
  EXPECT_EQ(shares.deal(3, kAll, std::array{8u, 6u, 10u}, 24),
            (Told{{2, {.from = 3, .first = 8, .count = 6, .total = 24}},
                  {5, {.from = 3, .first = 14, .count = 10, .total = 24}}}));
  EXPECT_EQ(shares.deal(4, kAll, std::array{6u, 8u, 10u}, 24).size(), 2u)
      << "the stretch of 5 stays where it was";
  EXPECT_EQ(shares.deal(5, kAll, std::array{6u, 8u, 10u}, 25).size(), 3u);
}

TEST(DealtShares, ALostWorkersNextIncarnationIsTold) {
  DealtShares shares;
  shares.deal(1, kAll, std::array{8u, 4u, 12u}, 24);
  shares.forget(2);
  EXPECT_EQ(shares.deal(2, kAll, std::array{8u, 4u, 12u}, 24),
            (Told{{2, {.from = 2, .first = 8, .count = 4, .total = 24}}}));
}

}  // namespace
}  // namespace drover
