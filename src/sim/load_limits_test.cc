#include "sim/load_limits.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

class LoadLimitsTest : public ::testing::Test {
 protected:
  LoadLimits limits_{{.step = 10s, .events = 5, .kept = 7, .shard_kept = 6}};
};

TEST_F(LoadLimitsTest, AcceptLoadWithinTheLimits) {
  EXPECT_EQ(limits_.on_load({.events = 5, .kept = 7, .kept_by_shard = 6}, 0, TimePoint(10s)), "");
}

TEST_F(LoadLimitsTest, BoundPendingEventsAndKeptEntries) {
  EXPECT_EQ(limits_.on_load({.events = 6}, 0, {}), "6 events are pending, more than 5");
  EXPECT_EQ(limits_.on_load({.kept = 8}, 0, {}), "a server keeps 8 entries, more than 7");
  EXPECT_EQ(limits_.on_load({.kept_by_shard = 7}, 0, {}), "a shard keeps 7 entries, more than 6");
}

TEST_F(LoadLimitsTest, BoundTheTimeOfAStep) {
  EXPECT_EQ(limits_.on_load({}, 1, TimePoint(8s)), "");
  EXPECT_EQ(limits_.on_load({}, 1, TimePoint(18s)), "");
  EXPECT_EQ(limits_.on_load({}, 1, TimePoint(19s)),
            "no step has opened since 8.0 s, though events still happen");
}

TEST_F(LoadLimitsTest, BoundTheEventsOfAStep) {
  std::string wrong;
  for (int event = 0; event < 500'001 && wrong.empty(); ++event) wrong = limits_.on_load({}, 1, {});
  EXPECT_NE(wrong, "") << "endless events that take no time";
}

TEST_F(LoadLimitsTest, KeepTheMaximumLoad) {
  limits_.on_load({.events = 4, .kept = 1}, 0, {});
  limits_.on_load({.events = 2, .kept = 3}, 0, {});
  EXPECT_EQ(limits_.most().events, 4u);
  EXPECT_EQ(limits_.most().kept, 3u);
}

}  // namespace
}  // namespace drover
