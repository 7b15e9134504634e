// Shards save all their blocks at one version, and a run that continues from them has the result of
// a run without interruption. The coordinator makes a checkpoint when all shards have saved.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "coordinator/coordinator.h"
#include "core/test_text.h"
#include "shard/shard.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

const Layout kLayout({{"a", 700, TensorKind::kTrained},
                      {"b", 40, TensorKind::kTrained, 2.0, 0.0},
                      {"c", 90, TensorKind::kAveraged},
                      {"d", 1300, TensorKind::kTrained}});

// A gradient that is a function of its position and step.
float gradient_at(uint64_t place, WorkerId worker, Step step) {
  return static_cast<float>(static_cast<double>((place * 31 + worker * 17 + step * 7) % 97) / 97.0 -
                            0.5);
}

// One shard and two workers that push all blocks, one after the other.
class Driven {
 public:
  Driven(const Plan& plan, const std::vector<SavedBlock>* saved) : plan_(plan), shard_(0) {
    shard_.on_plan(plan);
    if (saved != nullptr) shard_.restore(*saved);
    step_ = plan.first_step;
    for (const WorkerId worker : {0u, 1u}) shard_.on_joined(worker, out_);
    if (saved == nullptr) push_all(0, kInitialStep);
    shard_.on_decision({.step = step_, .cutoff = 2, .alive = {0, 1}}, now_, out_);
  }

  bool asked_for_initial() const {
    return std::any_of(out_.begin(), out_.end(), [](const Outgoing& each) {
      const auto* control = std::get_if<Control>(&each.frame.payload);
      return control != nullptr && std::holds_alternative<WantInitial>(*control);
    });
  }

  void run_until(Step end) {
    for (; step_ < end; ++step_) {
      shard_.on_decision({.step = step_, .cutoff = 2, .alive = {0, 1}}, now_, out_);
      for (const WorkerId worker : {0u, 1u}) push_all(worker, step_);
    }
  }

  // Sent with the closing of the last step.
  uint64_t digest() const {
    uint64_t digest = 0;
    for (const Outgoing& each : out_) {
      const auto* control = std::get_if<Control>(&each.frame.payload);
      const auto* closed = control != nullptr ? std::get_if<StepClosed>(control) : nullptr;
      if (closed != nullptr && closed->digest != 0) digest = closed->digest;
    }
    return digest;
  }

  // The parameters that an evaluator would get of the last version: their average, if there is
  // one.
  std::vector<float> evaluated() {
    std::vector<float> all;
    Outbox out;
    const FrameHeader pull{
        .type = FrameType::kPull, .flags = kSnapshotFlag, .version = plan_.steps};
    EXPECT_TRUE(shard_.on_frame(kEvaluator, pull, nullptr, now_, out).ok());
    for (const Outgoing& each : out) {
      const auto* values = std::get_if<FloatSlice>(&each.frame.payload);
      if (values == nullptr) continue;
      all.insert(all.end(), values->span().begin(), values->span().end());
    }
    return all;
  }

  Shard& shard() { return shard_; }

 private:
  void push_all(WorkerId worker, Step step) {
    for (const Block& block : plan_.blocks.blocks) {
      auto values = std::make_shared<FloatBuffer>(block.length);
      for (uint32_t i = 0; i < block.length; ++i) {
        // Padding between tensors of a block is not trained.
        values->data()[i] = gradient_at(block.offset + i, worker, step == kInitialStep ? 5 : step);
      }
      const FrameHeader header{.type = FrameType::kOffer,
                               .step = step,
                               .worker = worker,
                               .block = block.id,
                               .samples = step == kInitialStep ? 0u : 1u + worker,
                               .length = block.length * static_cast<uint32_t>(sizeof(float))};
      const Status status = shard_.on_frame(worker, header, values, now_, out_);
      EXPECT_TRUE(status.ok()) << status.error().message;
    }
  }

  const Plan plan_;
  Shard shard_;
  Step step_ = 0;
  TimePoint now_ = 0s;
  Outbox out_;
};

Plan plan_of(OptimizerKind kind, double ema, uint32_t block_floats = 256) {
  return {.workers = 2,
          .steps = 12,
          .learning = {.optimizer = {.kind = kind, .weight_decay = 0.01, .ema_decay = ema},
                       .schedule = {.base = 0.05},
                       .deterministic = true},
          .tensors = kLayout.tensors(),
          .blocks = plan_blocks(kLayout, 1, block_floats)};
}

TEST(ShardCheckpoint, AResumedRunEqualsAnUninterruptedOne) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kNesterov,
        OptimizerKind::kRmsProp, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    SCOPED_TRACE(name_of(kind));
    Plan plan = plan_of(kind, 0.9);
    Driven whole(plan, nullptr);
    whole.run_until(12);

    plan.checkpoint_every = 5;
    Driven half(plan, nullptr);
    half.run_until(7);
    auto part = half.shard().take_checkpoint();
    ASSERT_TRUE(part.has_value());
    EXPECT_EQ(part->version, 5u);
    EXPECT_FALSE(half.shard().take_checkpoint().has_value());

    plan.first_step = 5;
    Driven rest(plan, &part->blocks);
    EXPECT_FALSE(rest.asked_for_initial());
    rest.run_until(12);
    EXPECT_NE(whole.digest(), 0u);
    EXPECT_EQ(rest.digest(), whole.digest());
    EXPECT_EQ(rest.evaluated(), whole.evaluated());
    EXPECT_EQ(rest.shard().take_checkpoint()->version, 10u);
    EXPECT_EQ(rest.shard().take_checkpoint()->version, 12u) << "the last step has a checkpoint";
  }
}

// A saved part does not change while training continues, since it is still being written.
TEST(ShardCheckpoint, ASavedPartDoesNotChange) {
  Plan plan = plan_of(OptimizerKind::kAdam, 0.9);
  plan.checkpoint_every = 3;
  Driven run(plan, nullptr);
  run.run_until(3);
  const auto part = run.shard().take_checkpoint();
  ASSERT_TRUE(part.has_value());
  std::vector<std::vector<float>> before;
  const auto all = [&](auto&& visit) {
    for (const SavedBlock& block : part->blocks) {
      for (const ConstBuffer& values :
           {block.parameters, block.momentum, block.squares, block.average}) {
        if (values) visit(values->span());
      }
    }
  };
  all([&](auto values) { before.emplace_back(values.begin(), values.end()); });
  run.run_until(12);
  size_t at = 0;
  all([&](auto values) {
    EXPECT_TRUE(std::equal(values.begin(), values.end(), before[at].begin()));
    ++at;
  });
  EXPECT_EQ(at, before.size());
}

TEST(ShardCheckpoint, WithoutAFolderNothingIsSaved) {
  Driven run(plan_of(OptimizerKind::kAdam, 0.0), nullptr);
  run.run_until(12);
  EXPECT_FALSE(run.shard().take_checkpoint().has_value());
}

class CheckpointCoordinator : public ::testing::Test {
 protected:
  class WaitForAll : public Policy {
   public:
    Choice decide(const Situation& situation) override {
      decided.push_back(situation.step);
      return {.cutoff = 2, .reason = "all"};
    }
    void learn(const StepTimes&) override {}
    void learn_late(Step, WorkerId, double) override {}
    std::vector<Step> decided;
  };

  void start(CoordinatorSettings settings) {
    settings.workers = settings.shards = 2;
    settings.evaluator = false;
    settings.workers_bring_model = brings_;
    coordinator_.emplace(settings, std::make_unique<WaitForAll>(), now_);
  }
  Status hello(Role role, uint32_t index, std::vector<TensorSpec> tensors = {},
               OptimizerSettings optimizer = {}) {
    return coordinator_->on_hello({.role = role,
                                   .index = index,
                                   .address = "unix:s",
                                   .tensors = std::move(tensors),
                                   .learning = Learning{.optimizer = optimizer}},
                                  now_, out_);
  }
  void gather() {
    for (const uint32_t index : {0u, 1u}) ASSERT_TRUE(hello(Role::kShard, index).ok());
    for (const uint32_t index : {0u, 1u})
      ASSERT_TRUE(hello(Role::kWorker, index, kLayout.tensors()).ok());
    for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, Ready{});
    for (const uint32_t index : {0u, 1u}) receive(Role::kWorker, index, Ready{});
  }
  void receive(Role role, uint32_t index, const Control& message) {
    const Status status = coordinator_->on_message(role, index, message, now_, out_);
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
  void close(Step step) {
    StepClosed closed{.step = step, .elapsed = 10ms};
    for (const WorkerId worker : {0u, 1u}) closed.arrivals.push_back({worker, 10ms, step});
    for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, closed);
    for (const WorkerId worker : {0u, 1u})
      receive(Role::kWorker, worker, StepReport{.step = step, .samples = 4});
  }
  // `os_error`: why the part is not saved; 0: it is saved.
  void saved(ShardId shard, Version version, int os_error = 0) {
    CheckpointSaved saved{.version = version,
                          .file = "shard-" + std::to_string(shard),
                          .bytes = 1'000'000,
                          .os_error = os_error};
    if (os_error != 0) {
      saved.failure = CheckpointFailure::kSystem;
      saved.error = "cannot write ck/step-" + std::to_string(version) + "/" + saved.file;
    }
    receive(Role::kShard, shard, saved);
  }
  std::vector<EventRecord> events(EventKind kind) const {
    std::vector<EventRecord> events;
    for (const RunRecord& record : out_.records) {
      const auto* event = std::get_if<EventRecord>(&record);
      if (event != nullptr && event->kind() == kind) events.push_back(*event);
    }
    return events;
  }
  std::optional<Plan> plan() const {
    for (const Outgoing& each : out_.messages) {
      const auto* control = std::get_if<Control>(&each.frame.payload);
      if (control == nullptr) continue;
      if (const auto* found = std::get_if<Plan>(control)) return *found;
    }
    return std::nullopt;
  }

  bool brings_ = false;
  TimePoint now_ = 0s;
  std::optional<Coordinator> coordinator_;
  CoordinatorOutput out_;
};

TEST_F(CheckpointCoordinator, MakesACheckpointWhenAllShardsHaveSaved) {
  start({.steps = 4, .checkpoint_every = 2, .checkpoint_dir = "ck"});
  gather();
  EXPECT_EQ(plan()->checkpoint_every, 2u);
  EXPECT_EQ(plan()->checkpoint_dir, "ck");
  close(0);
  close(1);
  saved(1, 2);
  EXPECT_TRUE(out_.checkpoints.empty());
  saved(0, 2);
  ASSERT_EQ(out_.checkpoints.size(), 1u);
  EXPECT_EQ(out_.checkpoints[0].version, 2u);
  EXPECT_EQ(out_.checkpoints[0].parts[1].file, "shard-1");
  EXPECT_EQ(out_.checkpoints[0].tensors, kLayout.tensors());
  EXPECT_EQ(out_.checkpoints[0].settings.at("optimizer"), "sgd");
  EXPECT_TRUE(events(EventKind::kCheckpointKept).empty());
  coordinator_->on_checkpoint_kept(2, done(), 500ms, now_, out_);
  ASSERT_EQ(events(EventKind::kCheckpointKept).size(), 1u);
  EXPECT_EQ(*events(EventKind::kCheckpointKept)[0].as<event::CheckpointKept>(),
            (event::CheckpointKept{.version = 2, .bytes = 2'000'000, .took = 500ms}));
}

TEST_F(CheckpointCoordinator, WaitsAtTheEndForTheLastCheckpoint) {
  start({.steps = 2, .checkpoint_every = 200});
  gather();
  close(0);
  close(1);
  EXPECT_FALSE(coordinator_->ended());
  saved(0, 2);
  saved(1, 2);
  EXPECT_FALSE(coordinator_->ended());
  coordinator_->on_checkpoint_kept(2, done(), 1s, now_, out_);
  EXPECT_TRUE(coordinator_->ended());
  ASSERT_EQ(events(EventKind::kEnded).size(), 1u);
  EXPECT_EQ(events(EventKind::kEnded)[0].as<event::Ended>()->cause, EndCause::kCompleted);
}

TEST_F(CheckpointCoordinator, DoesNotWaitForEver) {
  start({.steps = 1, .checkpoint_every = 200});
  gather();
  close(0);
  ASSERT_TRUE(coordinator_->wake_at().has_value());
  now_ = *coordinator_->wake_at();
  coordinator_->on_time(now_, out_);
  EXPECT_TRUE(coordinator_->ended());
  EXPECT_EQ(events(EventKind::kCheckpointFailed).size(), 1u);
}

TEST_F(CheckpointCoordinator, AFailureIsReportedOnceAndTheRunContinues) {
  start({.steps = 8, .checkpoint_every = 2});
  gather();
  for (const Step step : {0, 1, 2, 3, 4, 5}) close(step);
  saved(0, 2, ENOSPC);
  saved(1, 2);
  saved(0, 4, ENOSPC);
  saved(1, 4, ENOSPC);
  EXPECT_TRUE(out_.checkpoints.empty());
  ASSERT_EQ(events(EventKind::kCheckpointFailed).size(), 1u);
  EXPECT_EQ(events(EventKind::kCheckpointFailed)[0].peer, (Peer{Role::kShard, 0}));
  EXPECT_EQ(events(EventKind::kCheckpointFailed)[0].as<event::CheckpointFailed>()->os_error,
            ENOSPC);
  EXPECT_FALSE(coordinator_->ended());
  saved(0, 6);
  saved(1, 6);
  ASSERT_EQ(out_.checkpoints.size(), 1u);
  coordinator_->on_checkpoint_kept(6, done(), 1s, now_, out_);
  EXPECT_EQ(events(EventKind::kCheckpointKept).size(), 1u);
  // After a successful checkpoint a failure is reported again; also at the end, which then waits
  // for nothing more.
  for (const Step step : {6, 7}) close(step);
  saved(0, 8, ENOSPC);
  saved(1, 8, EIO);
  EXPECT_EQ(events(EventKind::kCheckpointFailed).size(), 3u) << "another cause is reported, too";
  EXPECT_TRUE(coordinator_->ended());
}

TEST_F(CheckpointCoordinator, ACheckpointThatWasNotRequestedBreaksTheProtocol) {
  start({.steps = 8, .checkpoint_every = 2});
  gather();
  for (const Version version : {1, 7, 10}) {
    EXPECT_FALSE(
        coordinator_->on_message(Role::kShard, 0, CheckpointSaved{.version = version}, now_, out_)
            .ok());
  }
  EXPECT_FALSE(
      coordinator_->on_message(Role::kWorker, 0, CheckpointSaved{.version = 2}, now_, out_).ok());
}

TEST_F(CheckpointCoordinator, ACheckpointFarAheadBreaksTheProtocol) {
  // Otherwise the state that is kept for missing parts would grow without bound.
  start({.steps = kEndless, .checkpoint_every = 2});
  gather();
  const auto report = [&](Version version) {
    return coordinator_->on_message(Role::kShard, 0, CheckpointSaved{.version = version}, now_,
                                    out_);
  };
  EXPECT_TRUE(report(Coordinator::kEarlyMax).ok());
  EXPECT_FALSE(report(Coordinator::kEarlyMax + 2).ok());
}

ResumeFrom resumed() {
  ResumeFrom from{.step = 5,
                  .folder = "ck/step-0000000005",
                  .tensors = kLayout.tensors(),
                  .settings = texts_of(OptimizerSettings{.kind = OptimizerKind::kAdam}),
                  .noise = {}};
  return from;
}

TEST_F(CheckpointCoordinator, ContinuesAtTheStepOfTheCheckpoint) {
  start({.steps = 8, .resume = resumed()});
  gather();
  EXPECT_EQ(plan()->first_step, 5u);
  EXPECT_EQ(plan()->resume_from, "ck/step-0000000005");
  EXPECT_EQ(coordinator_->step(), 5u);
  EXPECT_EQ(events(EventKind::kResumed).size(), 1u);
  for (const Step step : {5, 6, 7}) close(step);
  EXPECT_TRUE(coordinator_->ended());
  ASSERT_EQ(events(EventKind::kEnded).size(), 1u);
  EXPECT_EQ(events(EventKind::kEnded)[0].as<event::Ended>()->cause, EndCause::kCompleted);
}

TEST_F(CheckpointCoordinator, RefusesAModelThatDiffersFromTheCheckpoint) {
  start({.steps = 8, .resume = resumed()});
  std::vector<TensorSpec> other = kLayout.tensors();
  other[1].size = 41;
  const Status refused = hello(Role::kWorker, 0, other);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error(), is_error(ErrorKind::kInvalidInput, "b")) << "names the tensor";
  EXPECT_TRUE(hello(Role::kWorker, 0, kLayout.tensors()).ok());
}

TEST_F(CheckpointCoordinator, RefusesAScriptWithOtherOptimizerSettings) {
  brings_ = true;
  start({.steps = 8, .resume = resumed()});
  const Status refused =
      hello(Role::kWorker, 0, kLayout.tensors(), {.kind = OptimizerKind::kAdam, .beta1 = 0.8});
  ASSERT_FALSE(refused.ok());
  for (const char* value : {"beta1", "0.9", "0.8"})
    EXPECT_NE(refused.error().message.find(value), std::string::npos) << refused.error().message;
  EXPECT_TRUE(hello(Role::kWorker, 0, kLayout.tensors(), {.kind = OptimizerKind::kAdam}).ok());
}

}  // namespace
}  // namespace drover
