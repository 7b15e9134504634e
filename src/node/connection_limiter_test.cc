// How long failing addresses are blocked. Tests pass the time.
#include "node/connection_limiter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace drover {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kAddress = "192.0.2.7";

TEST(ConnectionLimiter, AllowsAFewFailures) {
  ConnectionLimiter limiter;
  for (int i = 0; i < 16; ++i) {
    limiter.on_failure(kAddress, false, Duration{});
    EXPECT_FALSE(limiter.is_blocked(kAddress, Duration{})) << i;
  }
  limiter.on_failure(kAddress, false, Duration{});
  EXPECT_TRUE(limiter.is_blocked(kAddress, Duration{}));
  EXPECT_FALSE(limiter.is_blocked("192.0.2.8", Duration{})) << "other addresses are not affected";
}

TEST(ConnectionLimiter, BlocksTwiceAsLongEachTimeUpToALimit) {
  ConnectionLimiter limiter;
  TimePoint now{};
  for (int i = 0; i < 16; ++i) limiter.on_failure(kAddress, false, now);
  Duration expected = ConnectionLimiter::kRemote.first_block;
  for (int i = 0; i < 7; ++i) {
    limiter.on_failure(kAddress, false, now);
    // Longer blocks last longer than the refill of one failure (10 s).
    if (expected > seconds(8)) break;
    EXPECT_TRUE(limiter.is_blocked(kAddress, now + expected - Duration(1))) << i;
    EXPECT_FALSE(limiter.is_blocked(kAddress, now + expected)) << i;
    now += milliseconds(1);
    expected *= 2;
  }
  for (int i = 0; i < 40; ++i) limiter.on_failure(kAddress, false, now);
  EXPECT_TRUE(limiter.is_blocked(kAddress, now + minutes(5) - Duration(1)));
  EXPECT_FALSE(limiter.is_blocked(kAddress, now + minutes(5)));
}

TEST(ConnectionLimiter, RefillsWithTime) {
  ConnectionLimiter limiter;
  for (int i = 0; i < 30; ++i) limiter.on_failure(kAddress, false, Duration{});
  const TimePoint later = minutes(10);
  EXPECT_FALSE(limiter.is_blocked(kAddress, later));
  for (int i = 0; i < 16; ++i) limiter.on_failure(kAddress, false, later);
  EXPECT_FALSE(limiter.is_blocked(kAddress, later)) << "as if it had never failed";
}

TEST(ConnectionLimiter, ReportsOncePerAddressAndHour) {
  ConnectionLimiter limiter;
  EXPECT_TRUE(limiter.on_failure(kAddress, false, Duration{}));
  for (int i = 1; i < 100; ++i) EXPECT_FALSE(limiter.on_failure(kAddress, false, seconds(i)));
  EXPECT_TRUE(limiter.on_failure("192.0.2.8", false, seconds(100)));
  EXPECT_FALSE(limiter.on_failure("192.0.2.8", false, minutes(59)))
      << "although the bucket is full again";
  EXPECT_TRUE(limiter.on_failure("192.0.2.8", false, minutes(62)));
}

TEST(ConnectionLimiter, AllowsMoreFailuresOnThisHostAndOnHostsOfMembers) {
  ConnectionLimiter limiter;
  limiter.on_member(kAddress);
  for (int i = 0; i < 1000; ++i) {
    limiter.on_failure("", true, Duration{});
    limiter.on_failure(kAddress, false, Duration{});
  }
  EXPECT_FALSE(limiter.is_blocked("", Duration{}));
  EXPECT_FALSE(limiter.is_blocked(kAddress, Duration{}));
  for (int i = 0; i < 100'000; ++i) limiter.on_failure("", true, Duration{});
  EXPECT_TRUE(limiter.is_blocked("", Duration{}));
  EXPECT_FALSE(limiter.is_blocked("", seconds(1))) << "blocks are short there";
}

TEST(ConnectionLimiter, KeepsBlockedAddressesWhenItsTableIsFull) {
  ConnectionLimiter limiter;
  for (int i = 0; i < 20; ++i) limiter.on_failure(kAddress, false, Duration{});
  ASSERT_TRUE(limiter.is_blocked(kAddress, Duration{}));
  for (int i = 0; i < 10'000; ++i) limiter.on_failure(std::to_string(i), false, Duration(i));
  EXPECT_EQ(limiter.addresses(), ConnectionLimiter::kAddressesMax);
  EXPECT_TRUE(limiter.is_blocked(kAddress, seconds(1)));
}

// An address never fails more often than its bucket allows, plus one failure after each block.
TEST(ConnectionLimiter, BoundsTheNumberOfFailures) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    ConnectionLimiter limiter;
    TimePoint now{};
    int failures = 0;
    while (now < minutes(60)) {
      now += Duration(random() % 2 == 0 ? random() % 1'000'000 : random() % 3'000'000'000);
      if (limiter.is_blocked(kAddress, now)) continue;
      limiter.on_failure(kAddress, false, now);
      ++failures;
    }
    EXPECT_LE(failures, 16 + 3600 / 10 + 40);
    EXPECT_GE(failures, 16);
  }
}

}  // namespace
}  // namespace drover
