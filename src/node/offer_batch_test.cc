#include "node/offer_batch.h"

#include <gtest/gtest.h>

#include <memory>

namespace drover {
namespace {

TEST(OfferBatch, IsSentWhenItsBlocksAreLargeEnough) {
  constexpr size_t kHalf = OfferBatch::kBytes / sizeof(float) / 2;
  const Layout layout({{"a", kHalf}, {"b", kHalf}, {"c", kHalf}});
  const BlockPlan blocks = plan_blocks(layout, 1, kHalf);
  const auto floats = std::make_shared<FloatBuffer>(layout.buffer_size());
  WorkerMachine machine(0, blocks, floats, floats);
  OfferBatch batch;
  machine.begin_pull({}, batch.messages());
  const Outbox pull = batch.take();
  for (const Block& block : blocks.blocks) {
    const FrameHeader answer{.type = FrameType::kParameters,
                             .step = pull.at(0).frame.header.step,
                             .block = block.id,
                             .length = static_cast<uint32_t>(block.length * sizeof(float))};
    ASSERT_TRUE(machine.on_frame(0, answer, {}, batch.messages()).ok());
  }
  ASSERT_TRUE(machine.ready());
  machine.begin_step();
  batch.messages().push_back({to_coordinator(), control_frame(Ready{})});
  EXPECT_FALSE(batch.offer(machine, 2, 1)) << "half of kBytes";
  EXPECT_TRUE(batch.offer(machine, 1, 1));
  const Outbox sent = batch.take();
  ASSERT_EQ(sent.size(), 3u) << "earlier messages are sent with it";
  EXPECT_EQ(sent[0].to, to_coordinator());
  EXPECT_TRUE(batch.messages().empty());
  EXPECT_FALSE(batch.offer(machine, 0, 1)) << "the count starts at zero again";
}

}  // namespace
}  // namespace drover
