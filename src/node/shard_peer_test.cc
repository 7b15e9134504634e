#include "node/shard_peer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "net/test_loop.h"
#include "node/test_channels.h"

namespace drover {
namespace {

constexpr size_t kFloats = 16;
const Block kBlock{.id = 0, .offset = 0, .length = kFloats};

class ShardPeerTest : public LoopTest {
 protected:
  // The memory comes with a message on the control lane, as in a run.
  void connect(int memory = -1) {
    Channel::Callbacks callbacks;
    callbacks.on_control = [this](const Control&) {
      peer_.attach(Lane::kControl, control_.near);
      return done();
    };
    control_.near->start(std::move(callbacks));
    control_.far->send(control_frame(Ready{}), memory);
    ASSERT_TRUE(run_until([&] { return peer_.has(Lane::kControl); }));
    bulk_.near->start({});
    EXPECT_FALSE(peer_.has(Lane::kBulk));
    peer_.attach(Lane::kBulk, bulk_.near);
    EXPECT_FALSE(peer_.joined());
    ASSERT_TRUE(peer_.join(kFloats).ok());
    EXPECT_TRUE(peer_.joined());
  }
  // The shard and the peer share memory.
  void connect_in_place() {
    ASSERT_TRUE(published_.reserve({.blocks = {kBlock}, .shards = 1}, 0).ok());
    connect(gradients_->file());
  }
  static Frame parameters(ConstBuffer floats) {
    return {{.type = FrameType::kParameters, .block = 0},
            FloatSlice{std::move(floats), 0, kFloats}};
  }

  ParameterMemory published_;
  const std::unique_ptr<GradientMemory> gradients_ = GradientMemory::create(kFloats, 1).value();
  ChannelPair control_{loop_};
  ChannelPair bulk_{loop_};
  ShardPeer peer_{published_};
};

TEST_F(ShardPeerTest, WithoutSharedMemoryParametersTravelOnTheBulkLane) {
  connect();
  const auto floats = std::make_shared<FloatBuffer>(kFloats);
  std::ranges::fill(floats->span(), 2.0F);
  peer_.send(Lane::kBulk, parameters(floats), true);
  ASSERT_TRUE(run_until([&] { return bulk_.frames.size() == 1; }));
  EXPECT_EQ(bulk_.frames[0].flags & kInPlaceFlag, 0);
  EXPECT_EQ(bulk_.floats, std::vector<float>(kFloats, 2.0F));
  EXPECT_EQ(peer_.lent(), 0u);
  EXPECT_FALSE(peer_.block_in_place({}, kBlock).ok());
}

TEST_F(ShardPeerTest, ParametersInSharedMemoryAreLentUntilTheyAreTaken) {
  connect_in_place();
  const ConstBuffer floats = published_.make(kFloats);
  ASSERT_NE(floats, nullptr);
  const auto place = published_.place_of(floats->data());
  EXPECT_FALSE(peer_.on_taken(*place).ok()) << "it was not lent";
  peer_.send(Lane::kBulk, parameters(floats), true);
  peer_.send(Lane::kBulk, parameters(floats), true);
  ASSERT_TRUE(run_until([&] { return control_.frames.size() == 2; }));
  EXPECT_NE(control_.frames[0].flags & kInPlaceFlag, 0);
  EXPECT_EQ(control_.frames[0].place, *place);
  EXPECT_TRUE(bulk_.frames.empty());
  EXPECT_EQ(floats.use_count(), 2) << "its buffer is not reused";
  EXPECT_TRUE(peer_.on_taken(*place).ok());
  EXPECT_EQ(peer_.lent(), 1u);
  EXPECT_TRUE(peer_.on_taken(*place).ok());
  EXPECT_EQ(peer_.lent(), 0u);
  EXPECT_EQ(floats.use_count(), 1);
  EXPECT_FALSE(peer_.on_taken(*place).ok());
}

TEST_F(ShardPeerTest, ParametersOutsideSharedMemoryKeepTheirOrderWithThoseInside) {
  connect_in_place();
  peer_.send(Lane::kBulk, parameters(std::make_shared<FloatBuffer>(kFloats)), true);
  ASSERT_TRUE(run_until([&] { return control_.frames.size() == 1; }));
  EXPECT_EQ(control_.frames[0].flags & kInPlaceFlag, 0);
  EXPECT_TRUE(bulk_.frames.empty());
}

TEST_F(ShardPeerTest, ItsGradientsAreReadInPlace) {
  connect_in_place();
  gradients_->begin(0, 5);
  std::ranges::fill(gradients_->buffer(0)->span(), 3.0F);
  const auto block = peer_.block_in_place({.type = FrameType::kOffer, .step = 5}, kBlock);
  ASSERT_TRUE(block.ok());
  EXPECT_EQ(block.value()->span()[kFloats - 1], 3.0F);
  EXPECT_TRUE(block.value()->intact());
}

TEST_F(ShardPeerTest, TheAnswerToAGradientInPlaceIsSentWithTheNextMessage) {
  connect_in_place();
  peer_.send(Lane::kControl,
             {{.type = FrameType::kAnswer, .step = 1, .answer = Answer::kAccepted}, {}}, true);
  loop_.poll();
  EXPECT_TRUE(control_.frames.empty());
  peer_.send(Lane::kControl, {{.type = FrameType::kGrant, .step = 2}, {}}, true);
  ASSERT_TRUE(run_until([&] { return control_.frames.size() == 2; }));
  EXPECT_EQ(control_.frames[0].type, FrameType::kAnswer);
}

TEST_F(ShardPeerTest, ReceivesTheFileOfTheSharedMemory) {
  connect_in_place();
  peer_.send(Lane::kControl, control_frame(Connected{}), true);
  ASSERT_TRUE(run_until([&] { return control_.controls.size() == 1; }));
  EXPECT_EQ(control_.controls[0], Control(Connected{}));
  EXPECT_TRUE(control_.far->take_file().open());
}

TEST_F(ShardPeerTest, GradientsThatAreTooSmallAreRefused) {
  ASSERT_TRUE(published_.reserve({.blocks = {kBlock}, .shards = 1}, 0).ok());
  Channel::Callbacks callbacks;
  callbacks.on_control = [this](const Control&) {
    peer_.attach(Lane::kControl, control_.near);
    return done();
  };
  control_.near->start(std::move(callbacks));
  control_.far->send(control_frame(Ready{}), gradients_->file());
  ASSERT_TRUE(run_until([&] { return peer_.has(Lane::kControl); }));
  EXPECT_FALSE(peer_.join(1000 * kFloats).ok());
  EXPECT_FALSE(peer_.joined());
}

TEST_F(ShardPeerTest, SixteenBitNumbersAreWidenedOnArrival) {
  BufferPool pool;
  const FrameHeader header{.type = FrameType::kBlock, .number_type = NumberType::kBfloat16};
  const std::span<std::byte> into = peer_.receive(Lane::kBulk, header, 2, pool);
  ASSERT_EQ(into.size(), 2 * sizeof(uint16_t));
  std::ranges::fill(into, std::byte{0});
  into[1] = into[3] = std::byte{0x40};  // 2.0 in bfloat16
  const ConstBuffer floats = peer_.take_received(Lane::kBulk, header);
  ASSERT_NE(floats, nullptr);
  EXPECT_EQ(floats->span()[0], 2.0F);
  EXPECT_EQ(floats->span()[1], 2.0F);
  EXPECT_EQ(peer_.take_received(Lane::kBulk, header), nullptr) << "it is taken once";
  EXPECT_EQ(peer_.take_received(Lane::kControl, header), nullptr) << "lanes are read separately";
}

}  // namespace
}  // namespace drover
