// Runs with a standby for each shard: which process serves, and the state that a restarted run
// continues from.
#include "coordinator/coordinator_fixture.h"

namespace drover {
namespace {

CoordinatorSettings with_standbys(std::optional<ResumeFrom> resume = std::nullopt) {
  CoordinatorSettings settings{.workers = 2, .shards = 2, .steps = 10, .checkpoint_dir = "ck"};
  settings.recovers = true;
  settings.standby = true;
  settings.incarnation = resume ? 2 : 1;
  settings.resume = std::move(resume);
  return settings;
}

class StandbyTest : public CoordinatorTest {
 protected:
  explicit StandbyTest(std::optional<ResumeFrom> resume = std::nullopt)
      : CoordinatorTest(with_standbys(std::move(resume))) {}

  Hello server(Role role, uint32_t index, std::vector<KeptVersion> kept = {}) {
    Hello hello = shard(index);
    hello.role = role;
    hello.address = peer_name(role, index);
    hello.kept = std::move(kept);
    return hello;
  }
  void join(Role role, uint32_t index, std::vector<KeptVersion> kept = {}) {
    const Status admitted = hello(server(role, index, std::move(kept)));
    EXPECT_TRUE(admitted.ok()) << admitted.error().message;
  }
  void workers_come() {
    for (const Hello& peer : {worker(0), worker(1), evaluator()}) ASSERT_TRUE(hello(peer).ok());
  }
  void expect_restart_from(RestartPoint point) {
    const EventRecord last = recorded<EventRecord>().back();
    ASSERT_EQ(last.kind(), EventKind::kRestarted);
    EXPECT_EQ(last.as<event::Restarted>()->from, point);
  }
  void lose(Role role, uint32_t index) {
    coordinator_.on_lost(role, index, disconnected("gone"), now_, out_);
  }
};

TEST_F(StandbyTest, OneProcessServesAndTheOtherGetsItsAddress) {
  for (const Role role : {Role::kStandby, Role::kShard}) {
    join(role, 0);
    join(role, 1);
  }
  workers_come();
  const auto plans = sent<Plan>();
  ASSERT_EQ(plans.size(), 2u);
  for (const auto& [to, plan] : plans) {
    EXPECT_EQ(to.role, Role::kShard);
    EXPECT_TRUE(plan.standby);
    EXPECT_EQ(plan.incarnation, 1u);
  }
  const auto orders = sent<StandBy>();
  ASSERT_EQ(orders.size(), 2u);
  for (const auto& [to, order] : orders) {
    EXPECT_EQ(to.role, Role::kStandby);
    EXPECT_EQ(order.address, peer_name(Role::kShard, to.index));
  }
  EXPECT_EQ(sent<Welcome>()[0].second.shards, (std::vector<std::string>{"shard 0", "shard 1"}));
}

TEST_F(StandbyTest, TheRunNeedsNoStandby) {
  gather();
  EXPECT_EQ(sent<Decision>().size(), 2u);
  join(Role::kStandby, 1);
  EXPECT_EQ(sent<StandBy>().size(), 1u);
  lose(Role::kStandby, 1);
  EXPECT_FALSE(coordinator_.ended());
  const EventRecord last = recorded<EventRecord>().back();
  ASSERT_EQ(last.kind(), EventKind::kLost);
  EXPECT_EQ(last.as<event::Lost>()->effect, event::LossEffect::kUnprotected);
  join(Role::kStandby, 1);
  EXPECT_EQ(sent<StandBy>().size(), 2u);
}

TEST_F(StandbyTest, RefusesReportsOfStandbys) {
  gather();
  join(Role::kStandby, 1);
  EXPECT_FALSE(coordinator_.on_message(Role::kStandby, 1, StepClosed{.step = 0}, now_, out_).ok());
}

TEST_F(StandbyTest, AnInterruptedRunIsNotContinued) {
  gather();
  for (Step step = 0; step < 4; ++step) close(step, {0, 1});
  lose(Role::kShard, 1);
  ASSERT_TRUE(coordinator_.committed());
  coordinator_.on_interrupt(now_, out_);
  EXPECT_FALSE(coordinator_.committed());
}

TEST_F(StandbyTest, ARestartContinuesWithTheOpenStep) {
  gather();
  for (Step step = 0; step < 4; ++step) close(step, {0, 1});
  lose(Role::kShard, 1);
  ASSERT_TRUE(coordinator_.restarts());
  const auto& committed = coordinator_.committed();
  ASSERT_TRUE(committed);
  EXPECT_EQ(committed->step, 4u);
  EXPECT_EQ(committed->kept, (KeptVersion{4, 1}));
  EXPECT_EQ(committed->keepers, (std::set<ShardId>{0, 1}));
  EXPECT_EQ(committed->tensors, worker(0).tensors);
  expect_restart_from(RestartPoint::kMemory);
}

TEST_F(StandbyTest, RepeatsTheLastStep) {
  gather();
  for (Step step = 0; step < 10; ++step) {
    report(step, {0, 1});
    close(step, {0, 1});
  }
  EXPECT_FALSE(coordinator_.ended()) << "the evaluation is missing";
  lose(Role::kShard, 0);
  ASSERT_TRUE(coordinator_.committed());
  EXPECT_EQ(coordinator_.committed()->kept, (KeptVersion{9, 1}));
}

TEST_F(StandbyTest, NothingIsCommittedBeforeTheFirstStepHasClosed) {
  gather();
  lose(Role::kShard, 0);
  EXPECT_TRUE(coordinator_.restarts());
  EXPECT_FALSE(coordinator_.committed());
}

TEST_F(CoordinatorTest, ARunWithoutStandbysHasNoneAndKeepsNothing) {
  EXPECT_FALSE(hello({.role = Role::kStandby, .index = 0}).ok());
}

// The second incarnation of a run that had reached step 4.
class TakeOverTest : public StandbyTest {
 protected:
  TakeOverTest()
      : StandbyTest(ResumeFrom{.step = 4,
                               .folder = {},
                               .tensors = {{"w", 64, {}}, {"b", 32, {}}},
                               .settings = {},
                               .noise = {},
                               .kept = kKept,
                               .keepers = {0, 1}}) {}
  static constexpr KeptVersion kKept{4, 1};
};

TEST_F(TakeOverTest, TheStandbyOfALostShardServes) {
  workers_come();
  join(Role::kShard, 1, {});  // started again
  join(Role::kShard, 0, {kKept, {5, 1}});
  EXPECT_TRUE(sent<Plan>().empty()) << "no connected process keeps shard 1's part";
  join(Role::kStandby, 1, {kKept});
  const auto plans = sent<Plan>();
  ASSERT_EQ(plans.size(), 2u);
  std::set<std::pair<Role, uint32_t>> to;
  for (const auto& [address, plan] : plans) {
    to.emplace(address.role, address.index);
    EXPECT_EQ(plan.first_step, 4u);
    EXPECT_EQ(plan.kept, kKept);
    EXPECT_EQ(plan.resume_from, "");
    EXPECT_EQ(plan.incarnation, 2u);
  }
  EXPECT_EQ(to, (std::set<std::pair<Role, uint32_t>>{{Role::kShard, 0}, {Role::kStandby, 1}}));
  EXPECT_EQ(sent<Welcome>()[0].second.shards, (std::vector<std::string>{"shard 0", "standby 1"}));
  ASSERT_EQ(sent<StandBy>().size(), 1u);
  EXPECT_EQ(sent<StandBy>()[0].second.address, "standby 1");

  receive(Role::kShard, 0, Ready{});
  receive(Role::kStandby, 1, Ready{});
  for (const uint32_t index : {0u, 1u}) receive(Role::kWorker, index, Ready{});
  EXPECT_EQ(coordinator_.step(), 4u);
  const StepClosed closed{.step = 4, .arrivals = {{0, 10ms, 4}, {1, 10ms, 4}}, .samples = 8};
  receive(Role::kShard, 0, closed);
  receive(Role::kStandby, 1, closed);
  EXPECT_EQ(coordinator_.step(), 5u);

  lose(Role::kShard, 1);
  EXPECT_FALSE(coordinator_.ended()) << "it did not serve";
  lose(Role::kStandby, 1);
  ASSERT_TRUE(coordinator_.committed());
  EXPECT_EQ(coordinator_.committed()->kept, (KeptVersion{5, 2}));
}

TEST_F(TakeOverTest, ALossBeforeTheFirstStepKeepsTheEarlierState) {
  workers_come();
  for (const uint32_t index : {0u, 1u}) join(Role::kShard, index, {kKept});
  lose(Role::kShard, 0);
  ASSERT_TRUE(coordinator_.committed());
  EXPECT_EQ(coordinator_.committed()->kept, kKept);
}

TEST_F(TakeOverTest, WithoutAKeeperContinuesFromTheCheckpoint) {
  workers_come();
  join(Role::kShard, 0, {kKept});
  join(Role::kShard, 1, {{4, 0}});
  EXPECT_FALSE(coordinator_.ended());
  now_ += Gathering::kKeeperPatience;
  coordinator_.on_tick(now_, out_);
  EXPECT_TRUE(coordinator_.restarts());
  EXPECT_FALSE(coordinator_.committed());
  expect_restart_from(RestartPoint::kCheckpointIfAny);
}

}  // namespace
}  // namespace drover
