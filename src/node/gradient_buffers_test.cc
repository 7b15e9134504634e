#include "node/gradient_buffers.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace drover {
namespace {

constexpr size_t kFloats = 8;

GradientBuffers made(Sharing sharing, bool partial) {
  auto buffers = GradientBuffers::create(sharing, kFloats, partial);
  EXPECT_TRUE(buffers.ok());
  return std::move(buffers).value();
}

TEST(GradientBuffers, TheOnlyBufferIsFreeWhenItsLastFrameHasBeenSent) {
  GradientBuffers buffers = made(Sharing::kNo, false);
  const SharedBuffer first = buffers.current();
  EXPECT_EQ(first->size(), kFloats);
  buffers.on_sending(first);
  buffers.on_sending(first);
  EXPECT_FALSE(buffers.choose_free(false));
  EXPECT_FALSE(buffers.on_sent(first));
  EXPECT_FALSE(buffers.choose_free(false));
  EXPECT_TRUE(buffers.on_sent(first));
  EXPECT_TRUE(buffers.choose_free(false));
  EXPECT_EQ(buffers.current(), first);
}

TEST(GradientBuffers, NoBufferIsFreeBeforeTheInitialParametersHaveBeenSent) {
  for (const bool partial : {false, true}) {
    GradientBuffers buffers = made(Sharing::kNo, partial);
    const auto parameters = std::make_shared<FloatBuffer>(kFloats);
    buffers.on_sending(parameters);
    EXPECT_FALSE(buffers.choose_free(partial));
    buffers.on_sent(parameters);
    EXPECT_TRUE(buffers.choose_free(partial));
  }
}

TEST(GradientBuffers, WithPartialPullAShardThatIsBehindKeepsItsBuffer) {
  GradientBuffers buffers = made(Sharing::kNo, true);
  const SharedBuffer first = buffers.current();
  buffers.on_sending(first);
  ASSERT_TRUE(buffers.choose_free(true));
  const SharedBuffer second = buffers.current();
  EXPECT_NE(second, first);
  buffers.on_sending(second);
  ASSERT_TRUE(buffers.choose_free(true)) << "another buffer is used while a shard hangs";
  EXPECT_NE(buffers.current(), first);
  EXPECT_NE(buffers.current(), second);
  buffers.on_sent(first);
  ASSERT_TRUE(buffers.choose_free(true));
  EXPECT_EQ(buffers.current(), first) << "memory is used again";
}

TEST(GradientBuffers, FramesOfClosedConnectionsAreForgotten) {
  GradientBuffers buffers = made(Sharing::kNo, false);
  buffers.on_sending(buffers.current());
  buffers.on_sending(std::make_shared<FloatBuffer>(kFloats));
  buffers.forget_frames();
  EXPECT_TRUE(buffers.choose_free(false));
}

TEST(GradientBuffers, InSharedMemoryTwoBuffersAlternate) {
  GradientBuffers buffers = made(Sharing::kMust, true);
  EXPECT_GE(buffers.file(), 0);
  const float* const first = buffers.current()->data();
  EXPECT_EQ(buffers.place(), 0u);
  ASSERT_TRUE(buffers.choose_free(true));
  EXPECT_EQ(buffers.place(), 1u);
  EXPECT_NE(buffers.current()->data(), first);
  ASSERT_TRUE(buffers.choose_free(true));
  EXPECT_EQ(buffers.place(), 0u);
  EXPECT_EQ(buffers.current()->data(), first);
  EXPECT_EQ(made(Sharing::kNo, true).file(), -1);
}

}  // namespace
}  // namespace drover
