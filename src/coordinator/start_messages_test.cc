#include "coordinator/start_messages.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

const std::vector<TensorSpec> kTensors = {{"w", 64}, {"b", 32}};

// Every setting that is passed on has a value different from its default.
CoordinatorSettings settings() {
  CoordinatorSettings settings{.workers = 3, .shards = 2, .steps = 50, .evaluate_every = 4};
  settings.worker_options = {.wire_dtype = NumberType::kBfloat16, .slow = {SlowRule{}}};
  settings.full_samples = 24;
  settings.batch = 8;
  settings.seed = 77;
  settings.pull = {.share = 0.5, .grace = 3ms};
  settings.push_grace = 5ms;
  settings.checkpoint_every = 6;
  settings.checkpoint_dir = "checkpoints";
  settings.standby = true;
  settings.incarnation = 9;
  return settings;
}

const BlockMap kBlocks{Layout(kTensors), 2, kBlockFloats};

TEST(PlanOf, PassesOnTheSettings) {
  LearningRules rules;
  rules.optimizer.kind = OptimizerKind::kAdam;
  EXPECT_EQ(plan_of(settings(), rules, kBlocks), (Plan{.workers = 3,
                                                       .steps = 50,
                                                       .evaluate_every = 4,
                                                       .learning = rules,
                                                       .full_samples = 24,
                                                       .partial_pull = true,
                                                       .push_grace = 5ms,
                                                       .standby = true,
                                                       .incarnation = 9,
                                                       .checkpoint_every = 6,
                                                       .checkpoint_dir = "checkpoints",
                                                       .tensors = kTensors,
                                                       .blocks = kBlocks.plan()}));
}

TEST(PlanOf, NamesTheStateToContinueFrom) {
  CoordinatorSettings read = settings();
  read.resume = ResumeFrom{.step = 30, .folder = "step-30"};
  Plan plan = plan_of(read, {}, kBlocks);
  EXPECT_EQ(plan.first_step, 30u);
  EXPECT_EQ(plan.resume_from, "step-30");
  EXPECT_FALSE(plan.kept);
  read.resume = ResumeFrom{.step = 31, .kept = KeptVersion{31, 8}};
  plan = plan_of(read, {}, kBlocks);
  EXPECT_EQ(plan.kept, (KeptVersion{31, 8}));
  EXPECT_EQ(plan.resume_from, "");
}

TEST(PlanOf, PassesOnAsynchronousSettings) {
  CoordinatorSettings free = settings();
  free.asynchronous = Asynchronous{.staleness = 3};
  const Plan plan = plan_of(free, {}, kBlocks);
  EXPECT_TRUE(plan.asynchronous);
  EXPECT_EQ(plan.staleness, 3u);
}

TEST(WelcomeOf, PassesOnTheSettings) {
  CoordinatorSettings given = settings();
  EXPECT_EQ(welcome_of(given, kBlocks, 0.75, {"unix:a", "unix:b"}),
            (Welcome{.shards = {"unix:a", "unix:b"},
                     .blocks = kBlocks.plan(),
                     .steps = 50,
                     .evaluate_every = 4,
                     .workers = 3,
                     .batch = 8,
                     .seed = 77,
                     .wire_dtype = NumberType::kBfloat16,
                     .slow = given.worker_options.slow,
                     .partial_pull = true,
                     .pull_share = 0.75,
                     .pull_grace = 3ms}));
  given.resume = ResumeFrom{.step = 30};
  given.asynchronous = Asynchronous{};
  const Welcome welcome = welcome_of(given, kBlocks, 1.0, {});
  EXPECT_EQ(welcome.first_step, 30u);
  EXPECT_TRUE(welcome.asynchronous);
}

}  // namespace
}  // namespace drover
