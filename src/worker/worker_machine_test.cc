// The worker's state machine pulls parameters, offers blocks, sends granted blocks, and never sends
// a block of another step.
#include "worker/worker_machine.h"

#include <gtest/gtest.h>

#include "wire/limits.h"

namespace drover {
namespace {

class WorkerMachineTest : public ::testing::Test {
 protected:
  static Layout layout() {
    return Layout({{"large", 70'000, TensorKind::kTrained}, {"small", 10, TensorKind::kAveraged}});
  }

  WorkerMachineTest()
      : plan_(plan_blocks(layout(), 2)),
        parameters_(std::make_shared<FloatBuffer>(layout().buffer_size())),
        gradient_(std::make_shared<FloatBuffer>(layout().buffer_size())),
        machine_(5, plan_, parameters_, gradient_) {}

  void deliver(Version version) {
    ++pulls_;
    for (const Block& block : plan_.blocks) {
      const FrameHeader header{.type = FrameType::kParameters,
                               .step = pulls_,
                               .version = version,
                               .block = block.id,
                               .length = block.length * static_cast<uint32_t>(sizeof(float))};
      const Status status = machine_.on_frame(block.shard, header, TimePoint{}, out_);
      ASSERT_TRUE(status.ok()) << status.error().message;
    }
  }

  void begin_step(Version version) {
    machine_.begin_pull(TimePoint{}, out_);
    deliver(version);
    ASSERT_TRUE(machine_.ready());
    machine_.begin_step();
    out_.clear();
  }

  BlockPlan plan_;
  SharedBuffer parameters_;
  SharedBuffer gradient_;
  WorkerMachine machine_;
  Outbox out_;
  uint64_t pulls_ = 0;
};

TEST_F(WorkerMachineTest, IgnoresAStopOrderWithAnImpossibleStep) {
  begin_step(0);
  for (const Step step : {~Step{0}, ~Step{0} - 1, Step{1} << 63}) machine_.on_stop(step);
  EXPECT_TRUE(machine_.wanted(0));
  machine_.begin_pull(TimePoint{}, out_);
  EXPECT_EQ(machine_.step(), 1u);
}

TEST_F(WorkerMachineTest, RefusesImpossibleVersions) {
  // The next step would overflow to 0.
  machine_.begin_pull(TimePoint{}, out_);
  for (const Version version : {kEndless + 1, ~Version{0}, Version{1} << 63}) {
    EXPECT_FALSE(machine_
                     .on_frame(plan_.blocks[0].shard,
                               {.type = FrameType::kParameters,
                                .step = 1,
                                .version = version,
                                .block = 0,
                                .length = plan_.blocks[0].length * uint32_t{sizeof(float)}},
                               TimePoint{}, out_)
                     .ok());
  }
}

TEST_F(WorkerMachineTest, OffersLargeBlocksAndSendsSmallOnesAtOnce) {
  begin_step(0);
  machine_.offer(0, 32, out_);
  ASSERT_EQ(out_.size(), 2u) << "the large tensor has two blocks";
  const size_t inlined =
      static_cast<size_t>(std::count_if(out_.begin(), out_.end(), [](const Outgoing& each) {
        return std::holds_alternative<FloatSlice>(each.frame.payload);
      }));
  EXPECT_EQ(inlined, plan_.blocks[1].length * sizeof(float) <= kInlineBytesMax ? 1u : 0u);
  out_.clear();
  machine_.offer(1, 32, out_);
  ASSERT_EQ(out_.size(), 1u);
  EXPECT_EQ(out_[0].frame.header.type, FrameType::kOffer);
  EXPECT_EQ(out_[0].frame.header.samples, 32u);
  EXPECT_EQ(out_[0].frame.header.worker, 5u);
  EXPECT_EQ(std::get<FloatSlice>(out_[0].frame.payload).length, 10u);
}

TEST_F(WorkerMachineTest, OffersABlockOfSeveralTensorsWhenAllAreReady) {
  const Layout small({{"a", 5'000, TensorKind::kTrained},
                      {"b", 20, TensorKind::kTrained},
                      {"c", 20, TensorKind::kTrained}});
  BlockPlan plan = plan_blocks(small, 1);
  ASSERT_EQ(plan.blocks.size(), 2u) << "b and c are one block";
  const auto buffer = std::make_shared<FloatBuffer>(small.buffer_size());
  WorkerMachine machine(5, plan, buffer, buffer);
  for (Version version = 0; version < 2; ++version) {
    machine.begin_pull({}, out_);
    for (const Block& block : plan.blocks) {
      const FrameHeader header{.type = FrameType::kParameters,
                               .step = version + 1,
                               .version = version,
                               .block = block.id,
                               .length = block.length * static_cast<uint32_t>(sizeof(float))};
      ASSERT_TRUE(machine.on_frame(0, header, {}, out_).ok());
    }
    machine.begin_step();
    out_.clear();
    machine.offer(2, 32, out_);
    EXPECT_TRUE(out_.empty());
    machine.offer(1, 32, out_);
    ASSERT_EQ(out_.size(), 1u);
    EXPECT_EQ(out_[0].frame.header.block, 1u);
    machine.offer(0, 32, out_);
    EXPECT_EQ(out_.size(), 2u);
  }
}

TEST_F(WorkerMachineTest, WaitsForTheNormOfHeldGradientsFromEveryShardThatHasThem) {
  begin_step(0);
  machine_.expect_norm({0});
  machine_.offer(0, 4, out_, kHoldFlag);
  std::vector<ShardId> shards;
  for (const Outgoing& each : out_) {
    EXPECT_EQ(each.frame.header.flags, kHoldFlag);
    EXPECT_GE(each.frame.header.version, 1u) << "how many blocks of the shard are held";
    shards.push_back(each.to.index);
  }
  ASSERT_EQ(shards.size(), 2u);
  machine_.on_norm(shards[0], {.step = 0, .squares = 9.0, .largest = 2.0});
  machine_.on_norm(shards[1], {.step = 7, .squares = 1.0, .largest = 1.0});
  EXPECT_FALSE(machine_.norm()) << "that was about another step";
  machine_.on_norm(shards[1], {.step = 0, .squares = 16.0, .largest = 3.0});
  ASSERT_TRUE(machine_.norm());
  EXPECT_EQ(machine_.norm()->squares, 25.0);
  EXPECT_EQ(machine_.norm()->largest, 3.0);
  out_.clear();
  machine_.release(0.5, true, out_);
  ASSERT_EQ(out_.size(), 2u);
  const Control expected = Release{.step = 0, .scale = 0.5, .used = true};
  EXPECT_EQ(std::get<Control>(out_[0].frame.payload), expected);
}

TEST_F(WorkerMachineTest, NoticesThatAHeldGradientWasNotTaken) {
  begin_step(0);
  machine_.expect_norm({0});
  machine_.offer(0, 4, out_, kHoldFlag);
  const Block& block = plan_.blocks[0];
  FrameHeader answer{.type = FrameType::kAnswer, .step = 0, .block = block.id};
  ASSERT_TRUE(machine_.on_frame(block.shard, answer, TimePoint{}, out_).ok());
  EXPECT_FALSE(machine_.held_in_vain());
  answer.answer = Answer::kLate;
  ASSERT_TRUE(machine_.on_frame(block.shard, answer, TimePoint{}, out_).ok());
  EXPECT_TRUE(machine_.held_in_vain());
  begin_step(1);
  EXPECT_FALSE(machine_.held_in_vain());
}

TEST_F(WorkerMachineTest, SendsGrantedBlocksAfterTheNextPullHasBegun) {
  begin_step(0);
  machine_.offer(0, 32, out_);
  machine_.begin_pull(TimePoint{}, out_);
  out_.clear();
  const Block& block = plan_.blocks[0];
  ASSERT_TRUE(machine_
                  .on_frame(block.shard, {.type = FrameType::kGrant, .step = 0, .block = block.id},
                            TimePoint{}, out_)
                  .ok());
  ASSERT_EQ(out_.size(), 1u);
  EXPECT_EQ(out_[0].to, to_shard(block.shard, Lane::kBulk));
  const auto& slice = std::get<FloatSlice>(out_[0].frame.payload);
  EXPECT_EQ(slice.buffer, gradient_);
  EXPECT_EQ(slice.offset, block.offset);
}

TEST_F(WorkerMachineTest, WithdrawsBlocksThatAreGrantedTooLate) {
  begin_step(0);
  machine_.offer(0, 32, out_);
  begin_step(1);
  const Block& block = plan_.blocks[0];
  ASSERT_TRUE(machine_
                  .on_frame(block.shard, {.type = FrameType::kGrant, .step = 0, .block = block.id},
                            TimePoint{}, out_)
                  .ok());
  ASSERT_EQ(out_.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(out_[0].frame.payload))
      << "the buffer belongs to step 1 now";
}

TEST_F(WorkerMachineTest, PullsTheStepAfterTheStopOrder) {
  begin_step(0);
  EXPECT_TRUE(machine_.wanted(0));
  machine_.on_stop(4);
  EXPECT_FALSE(machine_.wanted(4));
  EXPECT_TRUE(machine_.wanted(5));
  machine_.on_stop(2);
  EXPECT_FALSE(machine_.wanted(4)) << "a stop order is never revoked";
  machine_.begin_pull(TimePoint{}, out_);
  EXPECT_EQ(out_[0].frame.header.version, 5u);
}

TEST_F(WorkerMachineTest, PullsAheadWhileItIsNotDoneWithAStep) {
  begin_step(0);
  machine_.pull_ahead(out_);
  ASSERT_EQ(out_.size(), plan_.shards);
  for (const Outgoing& each : out_) {
    EXPECT_EQ(each.frame.header.type, FrameType::kPull);
    EXPECT_EQ(each.frame.header.version, 1u);
    EXPECT_NE(each.frame.header.flags & kNotDoneFlag, 0);
  }
  deliver(1);
  EXPECT_FALSE(machine_.ready()) << "its own step comes first";
  EXPECT_EQ(machine_.step(), 0u);
  out_.clear();
  machine_.offer(1, 8, out_);
  EXPECT_EQ(out_.at(0).frame.header.step, 0u);
  out_.clear();
  machine_.begin_pull(TimePoint{}, out_);
  ASSERT_EQ(out_.size(), plan_.shards) << "no request is repeated";
  for (const Outgoing& each : out_) {
    EXPECT_EQ(each.frame.header.type, FrameType::kDone);
    EXPECT_EQ(each.frame.header.version, 1u);
  }
  EXPECT_TRUE(machine_.ready());
  EXPECT_EQ(machine_.step(), 1u);
  machine_.begin_step();
  EXPECT_EQ(machine_.step(), 1u);
}

TEST_F(WorkerMachineTest, PullsAgainIfAStopOrderIsNewerThanThePullAhead) {
  begin_step(0);
  machine_.pull_ahead(out_);
  deliver(1);
  machine_.on_stop(3);
  out_.clear();
  machine_.begin_pull(TimePoint{}, out_);
  EXPECT_EQ(out_.at(0).frame.header.type, FrameType::kPull);
  EXPECT_EQ(out_.at(0).frame.header.version, 4u);
  EXPECT_EQ(out_.at(0).frame.header.flags & kNotDoneFlag, 0);
  EXPECT_FALSE(machine_.ready());
}

// A shard is ahead, so the worker pulls a newer version than at first. It skips the steps in
// between, and reports that it is done with them.
TEST_F(WorkerMachineTest, IsDoneWithStepsThatItSkipsAfterPullingAhead) {
  begin_step(0);
  machine_.pull_ahead(out_);
  ++pulls_;
  for (const Block& block : plan_.blocks) {
    const FrameHeader header{.type = FrameType::kParameters,
                             .step = pulls_,
                             .version = block.shard == 0 ? Version{2} : Version{1},
                             .block = block.id,
                             .length = block.length * static_cast<uint32_t>(sizeof(float))};
    ASSERT_TRUE(machine_.on_frame(block.shard, header, TimePoint{}, out_).ok());
  }
  out_.clear();
  machine_.begin_pull(TimePoint{}, out_);
  ASSERT_EQ(out_.size(), plan_.shards);
  for (const Outgoing& each : out_) {
    EXPECT_EQ(each.frame.header.type, FrameType::kDone);
    EXPECT_EQ(each.frame.header.version, 2u);
  }
}

TEST(AsynchronousWorkerMachine, NumbersItsGradientsByItself) {
  const BlockPlan plan = plan_blocks(Layout({{"a", 10, {}}, {"b", 10, {}}}), 1);
  const auto buffer = std::make_shared<FloatBuffer>(32);
  WorkerMachine machine(2, plan, buffer, buffer, PullKind::kMixed);
  Outbox out;
  const std::vector<std::vector<Version>> versions = {{4, 3}, {4, 4}, {9, 8}};
  for (uint64_t pull = 0; pull < versions.size(); ++pull) {
    out.clear();
    machine.begin_pull(TimePoint{}, out);
    EXPECT_EQ(out.at(0).frame.header.version, pull == 0 ? 0u : 4 + pull);
    for (const BlockId block : {0u, 1u}) {
      EXPECT_FALSE(machine.ready());
      const FrameHeader header{.type = FrameType::kParameters,
                               .step = pull + 1,
                               .version = versions[pull][block],
                               .block = block,
                               .length = 40};
      ASSERT_TRUE(machine.on_frame(0, header, TimePoint{}, out).ok());
    }
    ASSERT_TRUE(machine.ready());
    machine.begin_step();
    EXPECT_EQ(machine.step(), 4 + pull);
    out.clear();
    machine.offer(0, 1, out);
    EXPECT_EQ(out.at(0).frame.header.step, 4 + pull);
  }
}

TEST_F(WorkerMachineTest, SendsItsInitialParametersToTheShardThatRequestsThem) {
  machine_.on_want_initial(0, out_);
  ASSERT_FALSE(out_.empty());
  for (const Outgoing& each : out_) {
    EXPECT_EQ(each.frame.header.step, kInitialStep);
    EXPECT_EQ(each.to.index, 0u);
  }
}

TEST_F(WorkerMachineTest, RefusesParametersThatWereNotRequested) {
  begin_step(0);
  const Block& block = plan_.blocks[0];
  FrameHeader header{
      .type = FrameType::kParameters, .version = 1, .block = block.id, .length = block.length * 4};
  EXPECT_FALSE(machine_.destination(block.shard, header).ok())
      << "they would change while a gradient is computed";
  header.flags = kSnapshotFlag;
  EXPECT_TRUE(machine_.destination(block.shard, header).ok()) << "they have another destination";
  header.flags = 0;
  machine_.begin_pull(TimePoint{}, out_);
  EXPECT_TRUE(machine_.destination(block.shard, header).ok());
  EXPECT_FALSE(machine_.destination(1 - block.shard, header).ok());
  header.length = 4;
  EXPECT_FALSE(machine_.destination(block.shard, header).ok());
}

// --- partial pulls

class PartialMachineTest : public ::testing::Test {
 protected:
  PartialMachineTest() {
    machine_.begin_pull(TimePoint{}, out_);
    for (const Block& block : plan_.blocks) deliver(block.id, 0, 0.0f);
    begin();
  }

  void deliver(BlockId id, Version version, float value) {
    const Block& block = plan_.blocks[id];
    const FrameHeader header{.type = FrameType::kParameters,
                             .version = version,
                             .block = id,
                             .length = block.length * static_cast<uint32_t>(sizeof(float))};
    ASSERT_TRUE(machine_.destination(block.shard, header).ok());
    ASSERT_TRUE(machine_.expects(header));
    std::fill_n(machine_.begin_receiving(header)->data() + block.offset, block.length, value);
    ASSERT_TRUE(machine_.on_frame(block.shard, header, TimePoint{}, out_).ok());
  }
  void begin() {
    ASSERT_TRUE(machine_.ready());
    in_use_ = 1 - in_use_;
    machine_.begin_step(gradients_[in_use_]);
    out_.clear();
  }
  void pull() {
    machine_.begin_pull(TimePoint{}, out_);
    out_.clear();
  }
  float held(BlockId id) const { return parameters_->data()[plan_.blocks[id].offset]; }
  Outgoing granted(BlockId id, Step step) {
    out_.clear();
    const Status status = machine_.on_frame(plan_.blocks[id].shard,
                                            {.type = FrameType::kGrant, .step = step, .block = id},
                                            TimePoint{}, out_);
    EXPECT_TRUE(status.ok() && out_.size() == 1);
    return out_.front();
  }

  static Layout layout() {
    return Layout({{"a", 6'000, TensorKind::kTrained}, {"b", 6'000, TensorKind::kTrained}});
  }
  const BlockPlan plan_ = plan_blocks(layout(), 2);
  const SharedBuffer parameters_ = std::make_shared<FloatBuffer>(layout().buffer_size());
  const std::array<SharedBuffer, 2> gradients_ = {
      std::make_shared<FloatBuffer>(layout().buffer_size()),
      std::make_shared<FloatBuffer>(layout().buffer_size())};
  WorkerMachine machine_{
      3, plan_, parameters_, gradients_[0], PullKind::kTogether, PartialPull::Settings{0.5, {}}};
  size_t in_use_ = 0;
  Outbox out_;
};

TEST_F(PartialMachineTest, ParametersThatArriveDuringAGradientAreUsedByTheNextPull) {
  pull();
  deliver(0, 1, 1.0f);
  begin();
  EXPECT_EQ(machine_.step(), 1u);
  deliver(1, 1, 5.0f);
  EXPECT_EQ(held(1), 0.0f) << "a gradient is being computed on it";
  StepReport report;
  machine_.describe_pull(TimePoint{}, report);
  EXPECT_EQ(report.fresh, 1u);
  EXPECT_EQ(report.staleness_max, 1u);
  pull();
  EXPECT_EQ(held(1), 5.0f);
}

// An incomplete block is not used: it is received in another buffer than the one computed on.
TEST_F(PartialMachineTest, AnIncompleteBlockIsNotUsed) {
  pull();
  deliver(0, 1, 1.0f);
  begin();
  deliver(1, 1, 5.0f);
  const Block& block = plan_.blocks[1];
  const FrameHeader next{.type = FrameType::kParameters,
                         .version = 2,
                         .block = 1,
                         .length = block.length * static_cast<uint32_t>(sizeof(float))};
  machine_.begin_receiving(next)->data()[block.offset] = 6.0f;
  pull();
  EXPECT_EQ(held(1), 0.0f);
  ASSERT_TRUE(machine_.on_frame(block.shard, next, TimePoint{}, out_).ok());
  EXPECT_EQ(held(1), 6.0f);
}

TEST_F(PartialMachineTest, OnlyTheGradientOfTheStepBeforeCanStillBeSent) {
  machine_.offer(1, 4, out_);
  for (Step step = 1; step <= 2; ++step) {
    pull();
    deliver(0, step, 1.0f);
    begin();
    const Outgoing block = granted(1, 0);
    const bool there = std::holds_alternative<FloatSlice>(block.frame.payload);
    EXPECT_EQ(there, step == 1) << "step " << step;
    EXPECT_GT(block.frame.header.samples, 0u);
  }
}

TEST_F(PartialMachineTest, OffersToAShardThatDoesNotAnswerAreLimited) {
  size_t offers = 0;
  for (Step step = 1; step <= 10; ++step) {
    machine_.offer(1, 4, out_);
    offers += out_.size();
    pull();
    deliver(0, step, 1.0f);
    begin();
  }
  EXPECT_EQ(offers, 2u);
  const FrameHeader answer{.type = FrameType::kAnswer, .step = 0, .block = 1};
  ASSERT_TRUE(machine_.on_frame(plan_.blocks[1].shard, answer, TimePoint{}, out_).ok());
  out_.clear();
  machine_.offer(1, 4, out_);
  EXPECT_EQ(out_.size(), 1u);
}

// A shard limits the blocks that it sends without a report of received blocks. If the worker did
// not count blocks that arrive after a newer version, the shard would finally send nothing.
TEST_F(PartialMachineTest, BlocksThatArriveAfterANewerVersionAreCounted) {
  const BlockId id = 1;
  const Block& block = plan_.blocks[id];
  for (Version version = 2; version <= 20; version += 2) {
    deliver(id, version, 1.0f);
    const FrameHeader older{.type = FrameType::kParameters,
                            .version = version - 1,
                            .block = id,
                            .length = block.length * static_cast<uint32_t>(sizeof(float))};
    EXPECT_FALSE(machine_.expects(older));
    ASSERT_TRUE(machine_.on_frame(block.shard, older, TimePoint{}, out_).ok());
  }
  out_.clear();
  machine_.begin_pull(TimePoint{}, out_);
  for (const Outgoing& pull : out_) {
    const bool is_shard = pull.to.index == block.shard;
    EXPECT_EQ(pull.frame.header.place, is_shard ? 21u : 1u);
  }
}

TEST_F(WorkerMachineTest, IsDoneWithItsStepWhenItRequestsNewerParameters) {
  begin_step(0);
  machine_.pull_ahead(out_);
  machine_.begin_pull(TimePoint{}, out_);
  out_.clear();
  // One shard is ahead of the wanted version, so the request to the other is repeated.
  const Block& first = plan_.blocks[0];
  const FrameHeader header{.type = FrameType::kParameters,
                           .step = 2,
                           .version = 2,
                           .block = first.id,
                           .length = first.length * static_cast<uint32_t>(sizeof(float))};
  ASSERT_TRUE(machine_.on_frame(first.shard, header, TimePoint{}, out_).ok());
  ASSERT_FALSE(out_.empty());
  for (const Outgoing& each : out_) {
    EXPECT_EQ(each.frame.header.type, FrameType::kPull);
    EXPECT_EQ(each.frame.header.version, 2u);
    EXPECT_EQ(each.frame.header.flags & kNotDoneFlag, 0) << "its gradient of step 0 is complete";
  }
}

TEST_F(WorkerMachineTest, SendsItsInitialParametersOnlyUntilItsFirstStep) {
  const Block& small = plan_.blocks.back();
  ASSERT_LE(small.length * sizeof(float), kInlineBytesMax);
  const auto sent = [&] {
    out_.clear();
    machine_.on_want_initial(small.shard, out_);
    return out_.back().frame.payload;
  };
  const auto before = sent();
  ASSERT_TRUE(std::holds_alternative<FloatSlice>(before));
  EXPECT_EQ(std::get<FloatSlice>(before).buffer, parameters_);
  EXPECT_EQ(std::get<FloatSlice>(before).offset, small.offset);
  begin_step(0);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(sent())) << "they have changed since";
}

TEST_F(WorkerMachineTest, AStopFrameIsAStopOrder) {
  begin_step(0);
  ASSERT_TRUE(machine_.on_frame(0, {.type = FrameType::kStop, .step = 4}, TimePoint{}, out_).ok());
  EXPECT_FALSE(machine_.wanted(4));
  EXPECT_TRUE(machine_.wanted(5));
}

TEST_F(WorkerMachineTest, RefusesGrantsOfBlocksThatTheShardDoesNotHave) {
  begin_step(0);
  const auto grant = [&](ShardId shard, BlockId id) {
    const FrameHeader header{.type = FrameType::kGrant, .step = 0, .block = id};
    return machine_.on_frame(shard, header, TimePoint{}, out_).ok();
  };
  const Block& block = plan_.blocks[0];
  EXPECT_TRUE(grant(block.shard, block.id));
  EXPECT_FALSE(grant(1 - block.shard, block.id));
  const auto count = static_cast<BlockId>(plan_.blocks.size());
  for (const BlockId beyond : {count, count + 1, ~BlockId{0}}) EXPECT_FALSE(grant(0, beyond));
}

TEST_F(WorkerMachineTest, ParametersInPlaceHaveNoBytes) {
  machine_.begin_pull(TimePoint{}, out_);
  const Block& block = plan_.blocks[0];
  FrameHeader header{.type = FrameType::kParameters, .flags = kInPlaceFlag, .block = block.id};
  EXPECT_TRUE(machine_.destination(block.shard, header).ok());
  header.length = 1;
  EXPECT_FALSE(machine_.destination(block.shard, header).ok());
  header.flags = kNotDoneFlag;
  header.length = 0;
  EXPECT_FALSE(machine_.destination(block.shard, header).ok());
}

TEST_F(PartialMachineTest, APullRequestsTheNextVersionFromEveryShard) {
  machine_.begin_pull(TimePoint{}, out_);
  ASSERT_EQ(out_.size(), plan_.shards);
  for (const Outgoing& each : out_) {
    EXPECT_EQ(each.frame.header.type, FrameType::kPull);
    EXPECT_EQ(each.frame.header.version, 1u);
  }
}

TEST_F(PartialMachineTest, ABlockThatArrivedDuringAGradientIsFreshInTheNextPull) {
  deliver(1, 1, 5.0f);
  machine_.begin_pull(TimePoint{}, out_);
  EXPECT_TRUE(machine_.ready()) << "half of the blocks are enough";
  EXPECT_EQ(machine_.step(), 1u);
}

TEST_F(PartialMachineTest, AnotherShareAppliesFromItsStepOn) {
  machine_.on_pull_share({.from = 1, .share = 1.0});
  pull();
  deliver(0, 1, 1.0f);
  EXPECT_FALSE(machine_.ready());
  deliver(1, 1, 1.0f);
  EXPECT_TRUE(machine_.ready());
}

TEST_F(PartialMachineTest, EveryAnswerAllowsAnotherOffer) {
  const auto offered = [&](Step step) {
    machine_.offer(1, 4, out_);
    const size_t offers = out_.size();
    pull();
    deliver(0, step, 1.0f);
    begin();
    return offers;
  };
  for (const Step step : {Step{1}, Step{2}}) EXPECT_EQ(offered(step), 1u);
  EXPECT_EQ(offered(3), 0u);
  const FrameHeader answer{.type = FrameType::kAnswer, .step = 0, .block = 1};
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(machine_.on_frame(plan_.blocks[1].shard, answer, TimePoint{}, out_).ok());
  for (const Step step : {Step{4}, Step{5}}) EXPECT_EQ(offered(step), 1u);
  EXPECT_EQ(offered(6), 0u);
}

TEST(PartialMachine, WaitsForTheGraceWithEnoughBlocks) {
  using namespace std::chrono_literals;
  const Layout layout({{"a", 6'000, TensorKind::kTrained}, {"b", 6'000, TensorKind::kTrained}});
  const BlockPlan plan = plan_blocks(layout, 2);
  const auto buffer = std::make_shared<FloatBuffer>(layout.buffer_size());
  WorkerMachine machine(3, plan, buffer, buffer, PullKind::kTogether,
                        PartialPull::Settings{0.5, 10ms});
  Outbox out;
  const auto deliver = [&](BlockId id, Version version, TimePoint now) {
    const Block& block = plan.blocks[id];
    const FrameHeader header{.type = FrameType::kParameters,
                             .version = version,
                             .block = id,
                             .length = block.length * static_cast<uint32_t>(sizeof(float))};
    machine.begin_receiving(header);
    ASSERT_TRUE(machine.on_frame(block.shard, header, now, out).ok());
  };
  machine.begin_pull(0ms, out);
  EXPECT_FALSE(machine.wake_at());
  for (const Block& block : plan.blocks) deliver(block.id, 0, 0ms);
  machine.begin_step();
  machine.begin_pull(1s, out);
  deliver(0, 1, 1s);
  EXPECT_FALSE(machine.ready());
  EXPECT_EQ(machine.wake_at(), TimePoint{1s + 10ms});
  machine.on_time(1s + 9ms);
  EXPECT_FALSE(machine.ready());
  machine.on_time(1s + 10ms);
  EXPECT_TRUE(machine.ready());
}

}  // namespace
}  // namespace drover
