// The worker's machine pulls, offers, sends what is granted, and never sends what belongs to
// another step.
#include "worker/worker_machine.h"

#include <gtest/gtest.h>

#include "wire/limits.h"

namespace drover {
namespace {

class WorkerMachineTest : public ::testing::Test {
 protected:
  static Layout layout() {
    return Layout({{"large", 70'000, TensorKind::kTrained}, {"small", 10, TensorKind::kTrained}});
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

TEST_F(WorkerMachineTest, SendsWhatIsGrantedEvenAfterAskingForTheNextParameters) {
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

TEST_F(WorkerMachineTest, WithdrawsWhatIsGrantedTooLate) {
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

TEST_F(WorkerMachineTest, AsksForTheStepAfterTheWatermark) {
  begin_step(0);
  EXPECT_TRUE(machine_.wanted(0));
  machine_.on_stop(4);
  EXPECT_FALSE(machine_.wanted(4));
  EXPECT_TRUE(machine_.wanted(5));
  machine_.on_stop(2);
  EXPECT_FALSE(machine_.wanted(4)) << "a watermark never goes back";
  machine_.begin_pull(TimePoint{}, out_);
  EXPECT_EQ(out_[0].frame.header.version, 5u);
}

TEST(FreeWorkerMachine, NumbersItsGradientsByItself) {
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

TEST_F(WorkerMachineTest, GivesItsInitialParametersToTheShardThatAsks) {
  machine_.on_want_initial(0, out_);
  ASSERT_FALSE(out_.empty());
  for (const Outgoing& each : out_) {
    EXPECT_EQ(each.frame.header.step, kInitialStep);
    EXPECT_EQ(each.to.index, 0u);
  }
}

TEST_F(WorkerMachineTest, RefusesParametersThatWereNotAskedFor) {
  begin_step(0);
  const Block& block = plan_.blocks[0];
  FrameHeader header{
      .type = FrameType::kParameters, .version = 1, .block = block.id, .length = block.length * 4};
  EXPECT_FALSE(machine_.destination(block.shard, header).ok())
      << "they would change under a running gradient";
  machine_.begin_pull(TimePoint{}, out_);
  EXPECT_TRUE(machine_.destination(block.shard, header).ok());
  EXPECT_FALSE(machine_.destination(1 - block.shard, header).ok());
  header.length = 4;
  EXPECT_FALSE(machine_.destination(block.shard, header).ok());
}

}  // namespace
}  // namespace drover
