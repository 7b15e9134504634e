#include "node/back_off.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(BackOff, DoublesWithJitterUpToALimit) {
  BackOff back_off(1h);
  Duration most = BackOff::kFirst;
  for (int attempt = 0; attempt < 40; ++attempt) {
    const auto wait = back_off.next({}, attempt % 2 == 0 ? 0.0 : 0.999);
    ASSERT_TRUE(wait);
    EXPECT_GE(*wait, most / 2);
    EXPECT_LE(*wait, most);
    most = std::min<Duration>(2 * most, BackOff::kLongest);
  }
}

TEST(BackOff, GivesUpAfterItsPatienceAndNotBefore) {
  BackOff back_off(10s);
  const TimePoint start{};
  EXPECT_TRUE(back_off.next(start, 0.5));
  EXPECT_TRUE(back_off.next(start + 9s, 0.5));
  EXPECT_FALSE(back_off.next(start + 10s, 0.5));
}

TEST(BackOff, ASuccessResetsIt) {
  BackOff back_off(10s);
  TimePoint now{};
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(back_off.next(now, 0.0));
    EXPECT_TRUE(back_off.next(now, 0.0));
    now += 1h;
    back_off.on_joined();
    const auto wait = back_off.next(now, 0.0);
    ASSERT_TRUE(wait);
    EXPECT_EQ(*wait, BackOff::kFirst / 2);
  }
}

TEST(BackOff, WithoutPatienceThereIsOneRetryAfterAMembershipWithoutAWait) {
  BackOff back_off(0s);
  for (int round = 0; round < 3; ++round) {
    back_off.on_joined();
    EXPECT_EQ(back_off.next({}, 0.7), Duration::zero());
    EXPECT_FALSE(back_off.next({}, 0.7));
  }
}

}  // namespace
}  // namespace drover
