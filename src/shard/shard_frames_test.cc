// Frames to workers and the evaluator have the right headers and lanes.
#include "shard/shard_frames.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

class ShardFramesTest : public ::testing::Test {
 protected:
  ShardFramesTest() { block_.start(std::vector<float>(16, 2.0F)); }
  const Layout layout_{{{"one", 16, TensorKind::kTrained}}};
  const Plan plan_{
      .workers = 1, .steps = 4, .tensors = layout_.tensors(), .blocks = plan_blocks(layout_, 1)};
  BufferPool pool_;
  ShardBlock block_{plan_.blocks.blocks[0], plan_, &pool_, &pool_};
};

TEST_F(ShardFramesTest, AnAnswerHasTheVersionOfTheBlock) {
  const Outgoing sent = answer_frame(3, 7, block_, Answer::kLate);
  EXPECT_EQ(sent.to, to_worker(3, Lane::kControl));
  const FrameHeader expected{
      .type = FrameType::kAnswer, .step = 7, .worker = 3, .answer = Answer::kLate};
  EXPECT_EQ(sent.frame.header, expected);
}

TEST_F(ShardFramesTest, AGrantNamesItsOffer) {
  const Outgoing sent = grant_frame({.worker = 3, .step = 7, .block = 5, .bytes = 64});
  EXPECT_EQ(sent.to, to_worker(3, Lane::kControl));
  const FrameHeader expected{.type = FrameType::kGrant, .step = 7, .worker = 3, .block = 5};
  EXPECT_EQ(sent.frame.header, expected);
}

TEST_F(ShardFramesTest, ParametersAreOnTheBulkLaneWithTheNumberOfTheirPull) {
  const Pull pull{.worker = kEvaluator, .request = 9, .version = 0, .snapshot = true};
  const Outgoing sent = parameters_frame(block_, pull, 2, block_.parameters());
  EXPECT_EQ(sent.to, to_worker(kEvaluator, Lane::kBulk));
  const FrameHeader expected{
      .type = FrameType::kParameters, .flags = kSnapshotFlag, .step = 9, .version = 2};
  EXPECT_EQ(sent.frame.header, expected);
  EXPECT_EQ(std::get<FloatSlice>(sent.frame.payload).span().size(), 16u);
}

TEST_F(ShardFramesTest, APullOfADroppedSnapshotIsAnsweredWithTheNewestVersion) {
  const Outgoing sent = gone_frame(block_, {.worker = kEvaluator, .request = 9, .version = 3});
  EXPECT_EQ(sent.to, to_worker(kEvaluator, Lane::kControl));
  EXPECT_EQ(sent.frame.header, (FrameHeader{.type = FrameType::kGone, .step = 9}));
}

}  // namespace
}  // namespace drover
