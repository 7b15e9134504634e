#include "sim/connections.h"

#include <gtest/gtest.h>

#include <vector>

#include "sim/transit.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

constexpr Party kShard{Role::kShard, 0};
constexpr Party kWorker = worker_party(0);

SimulationSettings settings() {
  SimulationSettings settings;
  settings.coordinator.workers = 1;
  settings.coordinator.shards = 1;
  settings.scenario.links = {{{}, {.latency = 10ms}}};
  return settings;
}

// One worker and one shard, without a coordinator.
class ConnectionsTest : public ::testing::Test {
 protected:
  ConnectionsTest() {
    world_.processes.start(kWorker);
    world_.processes.start(kShard);
    world_.servers[kShard].process = std::make_unique<SimulatedServer>(
        kShard, world_.servers[kShard].kept, Shard::kWindowBytes, world_.time, world_.disk,
        [](const Outbox&) {}, [](const Outgoing&) {});
  }
  SimulatedServer& shard() { return *world_.servers[kShard].process; }
  void give_plan() {
    const Layout layout({{"small", 4, TensorKind::kTrained}});
    shard().on_plan(
        {.workers = 1, .steps = 1, .tensors = layout.tensors(), .blocks = plan_blocks(layout, 1)});
  }
  void run_until(TimePoint until) {
    bool over = false;
    world_.time.plan(until, [&] { over = true; });
    while (!over) world_.time.advance();
  }
  void connect() { connections_.connect(kWorker, world_.processes.number(kWorker), kShard); }
  void end(Party party) {
    world_.processes.end(party, false);
    connections_.close_all(party, world_.processes.number(party));
  }

  SimulatedWorld world_{settings(), nullptr};
  SimulationRecord record_{{}, nullptr, world_.time};
  std::vector<std::string> heard_;
  Connections connections_{
      world_,
      record_,
      {.on_connected = [this](Party,
                              Party party) { heard_.push_back(name_of(party) + " is here"); },
       .on_client_lost = [this](Party,
                                Party party) { heard_.push_back(name_of(party) + " is gone"); },
       .on_server_lost = [this](Party party,
                                Party) { heard_.push_back(name_of(party) + " is gone"); }}};
};

TEST_F(ConnectionsTest, AClientRetriesUntilTheShardHasAPlan) {
  connect();
  run_until(TimePoint(1s));
  EXPECT_TRUE(heard_.empty());
  give_plan();
  run_until(TimePoint(2s));
  EXPECT_EQ(heard_, (std::vector<std::string>{"worker 0 is here"}));
}

TEST_F(ConnectionsTest, AClientThatHasStoppedDoesNotRetry) {
  connect();
  end(kWorker);
  give_plan();
  run_until(TimePoint(1s));
  EXPECT_TRUE(heard_.empty());
}

TEST_F(ConnectionsTest, AShardIsNotifiedAfterAClientStops) {
  give_plan();
  connect();
  run_until(TimePoint(1s));
  end(kWorker);
  EXPECT_EQ(heard_.size(), 1u);
  run_until(TimePoint(2s));
  EXPECT_EQ(heard_, (std::vector<std::string>{"worker 0 is here", "worker 0 is gone"})) << "once";
}

TEST_F(ConnectionsTest, AClientIsNotifiedAfterItsShardStops) {
  give_plan();
  connect();
  run_until(TimePoint(1s));
  end(kShard);
  run_until(TimePoint(2s));
  EXPECT_EQ(heard_, (std::vector<std::string>{"worker 0 is here", "shard 0 is gone"}));
}

}  // namespace
}  // namespace drover
