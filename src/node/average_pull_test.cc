#include "node/average_pull.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace drover {
namespace {

class AveragePullTest : public ::testing::Test {
 protected:
  FrameHeader answer(BlockId block, Version version) const {
    return {.type = FrameType::kParameters,
            .flags = kSnapshotFlag,
            .step = out_.back().frame.header.step,
            .version = version,
            .block = block};
  }

  const Layout layout_{{{"a", 4}, {"b", 6}}};
  const BlockPlan blocks_ = plan_blocks(layout_, 1);
  AveragePull pull_{layout_.buffer_size()};
  Outbox out_;
};

TEST_F(AveragePullTest, RequestsTheNewestVersionThatIsKept) {
  EXPECT_FALSE(pull_.begin(1, blocks_, 7, 0, out_)) << "none are kept";
  EXPECT_FALSE(pull_.begin(1, blocks_, 2, 3, out_)) << "none are kept yet";
  EXPECT_TRUE(out_.empty());
  ASSERT_TRUE(pull_.begin(1, blocks_, 7, 3, out_));
  ASSERT_EQ(out_.size(), 1u);
  EXPECT_EQ(out_[0].frame.header.version, 6u);
}

TEST_F(AveragePullTest, IsCompleteWhenAllBlocksAreThere) {
  ASSERT_TRUE(pull_.begin(1, blocks_, 3, 3, out_));
  for (const Block& block : blocks_.blocks) {
    EXPECT_FALSE(pull_.complete());
    const FrameHeader header = answer(block.id, 3);
    ASSERT_TRUE(pull_.expects(header));
    std::ranges::fill(pull_.destination(block), static_cast<float>(block.id + 1));
    EXPECT_TRUE(pull_.on_frame(header, out_).ok());
  }
  ASSERT_TRUE(pull_.complete());
  EXPECT_EQ(pull_.version(), 3u);
  for (const Block& block : blocks_.blocks)
    EXPECT_EQ(pull_.values()[block.offset], static_cast<float>(block.id + 1));
}

TEST_F(AveragePullTest, UnrequestedParametersAreAnError) {
  const FrameHeader early{.type = FrameType::kParameters, .block = 0};
  EXPECT_FALSE(pull_.expects(early));
  EXPECT_FALSE(pull_.on_frame(early, out_).ok());
  ASSERT_TRUE(pull_.begin(1, blocks_, 3, 3, out_));
  EXPECT_FALSE(pull_.on_frame(answer(99, 3), out_).ok()) << "there is no such block";
  pull_.reset();
  EXPECT_FALSE(pull_.on_frame(answer(0, 3), out_).ok()) << "nothing is expected after reset()";
  EXPECT_FALSE(pull_.complete());
}

}  // namespace
}  // namespace drover
