// A shard's process starts from the state that the plan names, and hands out each version once for
// checkpoints and to the standby.
#include "shard/shard_server.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/test_text.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

Plan plan_of(Step checkpoint_every, bool standby) {
  const Layout layout({{"weights", 8, TensorKind::kTrained}});
  Plan plan{.workers = 1,
            .steps = 4,
            .learning = {.schedule = {.base = 0.5}},
            .standby = standby,
            .incarnation = 7,
            .checkpoint_every = checkpoint_every,
            .tensors = layout.tensors(),
            .blocks = plan_blocks(layout, 1)};
  return plan;
}

ConstBuffer eight(float value) {
  auto buffer = std::make_shared<FloatBuffer>(8);
  std::fill(buffer->span().begin(), buffer->span().end(), value);
  return buffer;
}

Frame push(Step step) {
  return {{.type = FrameType::kOffer, .step = step, .worker = 0, .samples = 1, .length = 32}, {}};
}

// Runs steps 0 to `steps` - 1 with one worker whose gradient is 1 everywhere.
void train(ShardServer& server, Step first, Step steps, Outbox& out) {
  Shard& shard = server.shard();
  shard.on_joined(0, out);
  if (first == 0) {
    ASSERT_TRUE(shard.on_frame(0, push(kInitialStep).header, eight(10.0F), 0s, out));
  }
  for (Step step = first; step < first + steps; ++step) {
    server.on_decision({.step = step, .cutoff = 1, .alive = {0}}, 0s, out);
    ASSERT_TRUE(shard.on_frame(0, push(step).header, eight(1.0F), 0s, out));
  }
}

template <typename Message>
size_t count(const Outbox& out) {
  return static_cast<size_t>(std::count_if(out.begin(), out.end(), [](const Outgoing& message) {
    const auto* control = std::get_if<Control>(&message.frame.payload);
    return control != nullptr && std::holds_alternative<Message>(*control);
  }));
}

TEST(ShardServer, HandsOutTheVersionsThatAreDueForACheckpoint) {
  KeptParts kept;
  ShardServer server(Role::kShard, 0, kept);
  const auto started = server.on_plan(plan_of(2, false));
  ASSERT_TRUE(started);
  EXPECT_TRUE(started.value());
  Outbox out;
  train(server, 0, 3, out);
  const auto due = server.take_checkpoints(out);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].version, 2u);
  EXPECT_FLOAT_EQ(due[0].blocks.at(0).parameters->data()[0], 9.0F);
  EXPECT_TRUE(kept.versions().empty()) << "without a standby nothing is kept in memory";
}

TEST(ShardServer, HoldsBackTheClosingOfAStepUntilTheStandbyHasItsVersion) {
  KeptParts kept;
  ShardServer server(Role::kShard, 0, kept);
  ASSERT_TRUE(server.on_plan(plan_of(0, true)));
  Outbox ignored;
  ASSERT_TRUE(server.on_standby(0, ignored));
  EXPECT_FALSE(server.on_standby(1, ignored)) << "it is the standby of another shard";
  Outbox said;
  train(server, 0, 1, said);
  Outbox out;
  for (Outgoing& message : said) {
    if (message.to.role == Role::kCoordinator) server.send_to_coordinator(std::move(message), out);
  }
  EXPECT_EQ(count<StepClosed>(out), 0u);
  EXPECT_TRUE(server.take_checkpoints(out).empty());
  EXPECT_EQ(count<Replica>(out), 1u);
  ASSERT_TRUE(server.on_replicated({.version = 1}, out));
  EXPECT_EQ(count<StepClosed>(out), 1u);
}

TEST(ShardServer, StartsFromAVersionInMemory) {
  KeptParts kept;
  {
    ShardServer before(Role::kShard, 0, kept);
    ASSERT_TRUE(before.on_plan(plan_of(0, true)));
    Outbox out;
    train(before, 0, 2, out);
    before.take_checkpoints(out);
  }
  Plan plan = plan_of(0, true);
  plan.first_step = 2;
  plan.kept = KeptVersion{.version = 2, .incarnation = 7};
  ShardServer server(Role::kShard, 0, kept);
  const auto started = server.on_plan(plan);
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_TRUE(started.value());
  Outbox out;
  train(server, 2, 1, out);
  server.take_checkpoints(out);
  const CheckpointPart* const part = kept.find({.version = 3, .incarnation = 7});
  ASSERT_NE(part, nullptr);
  EXPECT_FLOAT_EQ(part->blocks.at(0).parameters->data()[0], 8.5F);
}

TEST(ShardServer, RefusesToStartFromAVersionThatIsNotInMemory) {
  KeptParts kept;
  ShardServer server(Role::kStandby, 0, kept);
  Plan plan = plan_of(0, true);
  plan.first_step = 2;
  plan.kept = KeptVersion{.version = 2, .incarnation = 7};
  const auto started = server.on_plan(plan);
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error(), is_error(ErrorKind::kInvalidInput, "standby 0"));
}

TEST(ShardServer, WaitsForTheCallerToReadACheckpoint) {
  KeptParts kept;
  ShardServer server(Role::kShard, 0, kept);
  Plan plan = plan_of(2, false);
  plan.first_step = 2;
  plan.resume_from = "step-2";
  const auto started = server.on_plan(plan);
  ASSERT_TRUE(started);
  EXPECT_FALSE(started.value());
  EXPECT_FALSE(server.shard().has_plan());
  SavedBlock saved;
  saved.length = 8;
  saved.updates = 2;
  saved.parameters = eight(9.0F);
  server.start({saved});
  Outbox out;
  train(server, 2, 2, out);
  const auto due = server.take_checkpoints(out);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_FLOAT_EQ(due[0].blocks.at(0).parameters->data()[0], 8.0F);
}

}  // namespace
}  // namespace drover
