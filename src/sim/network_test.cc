#include "sim/network.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Party kShard{Role::kShard, 0};
constexpr Party worker(WorkerId id) { return {Role::kWorker, id}; }

Scenario with_link(const LinkLaw& law) {
  Scenario scenario;
  scenario.nodes = {2, 2};
  scenario.links.push_back({{}, law});
  return scenario;
}

TEST(Network, AFrameTakesTheLatency) {
  const Scenario scenario = with_link({.latency = milliseconds(3)});
  Network network(scenario, 1);
  EXPECT_EQ(network.arrival(seconds(1), worker(0), kShard, Lane::kBulk, 100, {}),
            seconds(1) + milliseconds(3));
}

TEST(Network, AStreamStaysInOrderAndOtherStreamsOvertake) {
  const Scenario scenario = with_link({.latency = milliseconds(1)});
  Network network(scenario, 1);
  const TimePoint slow = network.arrival({}, kShard, worker(0), Lane::kBulk, 100, milliseconds(50));
  EXPECT_EQ(slow, milliseconds(51));
  EXPECT_EQ(network.arrival(milliseconds(2), kShard, worker(0), Lane::kBulk, 100, {}), slow);
  EXPECT_EQ(network.arrival(milliseconds(2), kShard, worker(0), Lane::kControl, 100, {}),
            milliseconds(3));
}

TEST(Network, ManySendersShareTheReceiversBandwidth) {
  const Scenario scenario = with_link({.latency = {}, .bytes_per_second = 1000.0});
  Network network(scenario, 1);
  EXPECT_EQ(network.arrival({}, worker(0), kShard, Lane::kBulk, 500, {}), milliseconds(500));
  EXPECT_EQ(network.arrival({}, worker(1), kShard, Lane::kBulk, 500, {}), milliseconds(1000));
  EXPECT_EQ(network.arrival({}, worker(0), kShard, Lane::kBulk, 500, {}), milliseconds(1500));
}

TEST(Network, ALostFrameArrivesAfterTheResendTime) {
  const Scenario scenario =
      with_link({.latency = milliseconds(1), .loss = 0.5, .resend = milliseconds(200)});
  Network network(scenario, 1);
  int lost = 0;
  for (int i = 0; i < 2000; ++i) {
    const TimePoint sent = seconds(10 * i);
    const Duration took = network.arrival(sent, worker(0), kShard, Lane::kBulk, 1, {}) - sent;
    EXPECT_EQ((took - milliseconds(1)) % milliseconds(200), Duration::zero());
    lost += took > milliseconds(1);
  }
  EXPECT_NEAR(lost / 2000.0, 0.5, 0.05);
}

TEST(Network, APartitionDelaysOnlyFramesThatCrossIt) {
  const Scenario scenario = with_link({.latency = milliseconds(1)});
  Network network(scenario, 1);
  network.isolate({.node = 1}, seconds(5));
  EXPECT_EQ(network.arrival(seconds(1), worker(3), kShard, Lane::kControl, 1, {}),
            seconds(5) + milliseconds(1));
  EXPECT_EQ(network.arrival(seconds(1), kShard, worker(2), Lane::kControl, 1, {}),
            seconds(5) + milliseconds(1));
  EXPECT_EQ(network.arrival(seconds(1), worker(0), kShard, Lane::kControl, 1, {}),
            seconds(1) + milliseconds(1));
  EXPECT_EQ(network.arrival(seconds(6), worker(3), kShard, Lane::kControl, 1, {}),
            seconds(6) + milliseconds(1));
}

TEST(Network, TheLastMatchingLinkApplies) {
  Scenario scenario = with_link({.latency = milliseconds(1)});
  scenario.links.push_back({{.node = 1}, {.latency = milliseconds(40)}});
  Network network(scenario, 1);
  EXPECT_EQ(network.arrival({}, worker(0), kShard, Lane::kControl, 1, {}), milliseconds(1));
  EXPECT_EQ(network.arrival({}, kShard, worker(2), Lane::kControl, 1, {}), milliseconds(40));
}

}  // namespace
}  // namespace drover
