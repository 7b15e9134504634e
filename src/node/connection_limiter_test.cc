// How long failing addresses are shut out, in made-up time.
#include "node/connection_limiter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace drover {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kStranger = "192.0.2.7";

TEST(ConnectionLimiter, LetsAFewFailuresPass) {
  ConnectionLimiter guard;
  for (int i = 0; i < 16; ++i) {
    guard.on_failure(kStranger, false, Duration{});
    EXPECT_FALSE(guard.is_shut_out(kStranger, Duration{})) << i;
  }
  guard.on_failure(kStranger, false, Duration{});
  EXPECT_TRUE(guard.is_shut_out(kStranger, Duration{}));
  EXPECT_FALSE(guard.is_shut_out("192.0.2.8", Duration{})) << "others are not punished for it";
}

TEST(ConnectionLimiter, ShutsOutTwiceAsLongEachTimeUpToALimit) {
  ConnectionLimiter guard;
  TimePoint now{};
  for (int i = 0; i < 16; ++i) guard.on_failure(kStranger, false, now);
  Duration expected = ConnectionLimiter::kFar.shut_first;
  for (int i = 0; i < 7; ++i) {
    guard.on_failure(kStranger, false, now);
    // A pause that is over in less than what forgives one failure.
    if (expected > seconds(8)) break;
    EXPECT_TRUE(guard.is_shut_out(kStranger, now + expected - Duration(1))) << i;
    EXPECT_FALSE(guard.is_shut_out(kStranger, now + expected)) << i;
    now += milliseconds(1);
    expected *= 2;
  }
  for (int i = 0; i < 40; ++i) guard.on_failure(kStranger, false, now);
  EXPECT_TRUE(guard.is_shut_out(kStranger, now + minutes(5) - Duration(1)));
  EXPECT_FALSE(guard.is_shut_out(kStranger, now + minutes(5)));
}

TEST(ConnectionLimiter, ForgivesWithTime) {
  ConnectionLimiter guard;
  for (int i = 0; i < 30; ++i) guard.on_failure(kStranger, false, Duration{});
  const TimePoint later = minutes(10);
  EXPECT_FALSE(guard.is_shut_out(kStranger, later));
  for (int i = 0; i < 16; ++i) guard.on_failure(kStranger, false, later);
  EXPECT_FALSE(guard.is_shut_out(kStranger, later)) << "as if it had never failed";
}

TEST(ConnectionLimiter, TellsOncePerAddress) {
  ConnectionLimiter guard;
  EXPECT_TRUE(guard.on_failure(kStranger, false, Duration{}));
  for (int i = 1; i < 100; ++i) EXPECT_FALSE(guard.on_failure(kStranger, false, seconds(i)));
  EXPECT_TRUE(guard.on_failure("192.0.2.8", false, seconds(100)));
  EXPECT_FALSE(guard.on_failure("192.0.2.8", false, minutes(59))) << "although it is forgiven";
  EXPECT_TRUE(guard.on_failure("192.0.2.8", false, minutes(62)));
}

TEST(ConnectionLimiter, IsGenerousToThisMachineAndToWhereMembersComeFrom) {
  ConnectionLimiter guard;
  guard.on_member(kStranger);
  for (int i = 0; i < 1000; ++i) {
    guard.on_failure("", true, Duration{});
    guard.on_failure(kStranger, false, Duration{});
  }
  EXPECT_FALSE(guard.is_shut_out("", Duration{}));
  EXPECT_FALSE(guard.is_shut_out(kStranger, Duration{}));
  for (int i = 0; i < 100'000; ++i) guard.on_failure("", true, Duration{});
  EXPECT_TRUE(guard.is_shut_out("", Duration{}));
  EXPECT_FALSE(guard.is_shut_out("", seconds(1))) << "never for long";
}

TEST(ConnectionLimiter, RemembersSoManyAddressesAndTheWorstOfThem) {
  ConnectionLimiter guard;
  for (int i = 0; i < 20; ++i) guard.on_failure(kStranger, false, Duration{});
  ASSERT_TRUE(guard.is_shut_out(kStranger, Duration{}));
  for (int i = 0; i < 10'000; ++i) guard.on_failure(std::to_string(i), false, Duration(i));
  EXPECT_EQ(guard.addresses(), ConnectionLimiter::kAddressesMax);
  EXPECT_TRUE(guard.is_shut_out(kStranger, seconds(1)));
}

// Whatever an address does, it fails no more often than its bucket allows, but for one failure
// after each pause.
TEST(ConnectionLimiter, BoundsFailuresHoweverTheyCome) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    ConnectionLimiter guard;
    TimePoint now{};
    int failures = 0;
    while (now < minutes(60)) {
      now += Duration(random() % 2 == 0 ? random() % 1'000'000 : random() % 3'000'000'000);
      if (guard.is_shut_out(kStranger, now)) continue;
      guard.on_failure(kStranger, false, now);
      ++failures;
    }
    EXPECT_LE(failures, 16 + 3600 / 10 + 40);
    EXPECT_GE(failures, 16);
  }
}

}  // namespace
}  // namespace drover
