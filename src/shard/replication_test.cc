// A standby ends up with exactly the versions of its shard, and a step is not reported to the
// coordinator before the standby has its version.
#include "shard/replication.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

namespace drover {
namespace {

constexpr uint64_t kIncarnation = 7;

ConstBuffer floats(size_t size, float first) {
  auto buffer = std::make_shared<FloatBuffer>(size);
  for (size_t i = 0; i < size; ++i) buffer->data()[i] = first + static_cast<float>(i);
  return buffer;
}

CheckpointPart part(Version version, uint32_t blocks = 2) {
  CheckpointPart made{.shard = 3, .version = version, .blocks = {}};
  for (uint32_t block = 0; block < blocks; ++block) {
    const auto first = static_cast<float>(version * 1'000 + block * 100);
    made.blocks.push_back({.offset = block * 16,
                           .length = 5 + block,
                           .updates = version,
                           .beta1_power = 0.5,
                           .beta2_power = 0.25,
                           .parameters = floats(5 + block, first),
                           .momentum = block == 0 ? floats(5, first + 10) : nullptr,
                           .squares = nullptr,
                           .average = floats(5 + block, first + 20),
                           .lengths = {first, 2.0F}});
  }
  return made;
}

std::vector<float> values(const ConstBuffer& buffer) {
  return buffer ? std::vector<float>(buffer->span().begin(), buffer->span().end())
                : std::vector<float>();
}

void expect_same(const CheckpointPart& got, const CheckpointPart& wanted) {
  EXPECT_EQ(got.shard, wanted.shard);
  EXPECT_EQ(got.version, wanted.version);
  ASSERT_EQ(got.blocks.size(), wanted.blocks.size());
  for (size_t i = 0; i < got.blocks.size(); ++i) {
    const SavedBlock& mine = got.blocks[i];
    const SavedBlock& theirs = wanted.blocks[i];
    EXPECT_EQ(mine.offset, theirs.offset);
    EXPECT_EQ(mine.length, theirs.length);
    EXPECT_EQ(mine.updates, theirs.updates);
    EXPECT_EQ(mine.beta1_power, theirs.beta1_power);
    EXPECT_EQ(mine.beta2_power, theirs.beta2_power);
    EXPECT_EQ(values(mine.parameters), values(theirs.parameters));
    EXPECT_EQ(values(mine.momentum), values(theirs.momentum));
    EXPECT_EQ(values(mine.squares), values(theirs.squares));
    EXPECT_EQ(values(mine.average), values(theirs.average));
    EXPECT_EQ(mine.lengths, theirs.lengths);
  }
}

Outgoing closing(Step step) {
  return {{Role::kCoordinator, 0, Lane::kControl}, control_frame(StepClosed{.step = step})};
}

class ReplicationTest : public ::testing::Test {
 protected:
  // Delivers all messages, and notes the closings reported to the coordinator.
  void deliver(Outbox out) {
    for (Outgoing& message : out) {
      if (message.to.role == Role::kCoordinator) {
        reported_.push_back(std::get<StepClosed>(std::get<Control>(message.frame.payload)).step);
      } else if (message.to.role == Role::kStandby) {
        to_standby_.push_back(std::move(message.frame));
      }
    }
  }

  // Delivers one frame, or all frames, to the standby, and its answers to the shard.
  void carry_one() {
    ASSERT_FALSE(to_standby_.empty());
    const Frame frame = std::move(to_standby_.front());
    to_standby_.pop_front();
    Outbox out;
    if (const auto* control = std::get_if<Control>(&frame.payload)) {
      ASSERT_TRUE(intake_.on_replica(std::get<Replica>(*control), out).ok());
    } else {
      const auto& slice = std::get<FloatSlice>(frame.payload);
      const auto size = intake_.payload_floats(frame.header);
      ASSERT_TRUE(size.ok()) << size.error().message;
      EXPECT_EQ(size.value(), slice.length);
      auto copy = std::make_shared<FloatBuffer>(slice.length);
      std::copy(slice.span().begin(), slice.span().end(), copy->data());
      ASSERT_TRUE(intake_.on_floats(frame.header, copy, out).ok());
    }
    for (const Outgoing& answer : out) {
      Outbox further;
      const auto& control = std::get<Control>(answer.frame.payload);
      ASSERT_TRUE(source_.on_replicated(std::get<Replicated>(control), further).ok());
      deliver(std::move(further));
    }
  }
  void carry_all() {
    while (!to_standby_.empty()) ASSERT_NO_FATAL_FAILURE(carry_one());
  }

  void make(Version version) {
    Outbox out;
    source_.send_to_coordinator(closing(version - 1), out);
    source_.on_version(part(version), kIncarnation, out);
    deliver(std::move(out));
  }
  void attach() {
    Outbox out;
    source_.on_standby(out);
    deliver(std::move(out));
  }

  KeptParts mine_;
  KeptParts theirs_;
  ReplicaSource source_{3, mine_};
  ReplicaIntake intake_{3, theirs_};
  std::deque<Frame> to_standby_;
  std::vector<Step> reported_;  // to the coordinator
};

TEST_F(ReplicationTest, TheStandbyGetsEveryVersion) {
  attach();
  make(1);
  make(2);
  carry_all();
  for (const Version version : {1u, 2u}) {
    const CheckpointPart* const got = theirs_.find({version, kIncarnation});
    ASSERT_NE(got, nullptr);
    expect_same(*got, part(version));
  }
  EXPECT_EQ(reported_, (std::vector<Step>{0, 1}));
}

TEST_F(ReplicationTest, AStepIsReportedWhenItIsKeptTwice) {
  attach();
  make(1);
  EXPECT_TRUE(reported_.empty());
  while (to_standby_.size() > 1) {
    carry_one();
    EXPECT_TRUE(reported_.empty());
  }
  carry_one();
  EXPECT_EQ(reported_, std::vector<Step>{0});
}

TEST_F(ReplicationTest, WithoutAStandbyNothingWaits) {
  make(1);
  EXPECT_EQ(reported_, std::vector<Step>{0});
  attach();
  make(2);
  EXPECT_EQ(reported_, std::vector<Step>{0});
  Outbox out;
  source_.on_standby_lost(out);
  deliver(std::move(out));
  EXPECT_EQ(reported_, (std::vector<Step>{0, 1}));
}

TEST_F(ReplicationTest, ALaterStandbyGetsAllKeptVersions) {
  make(1);
  make(2);
  make(3);
  source_.on_decision(2);
  attach();
  carry_all();
  EXPECT_EQ(theirs_.versions(), (std::vector<KeptVersion>{{2, kIncarnation}, {3, kIncarnation}}));
}

TEST_F(ReplicationTest, DropsVersionsThatAllShardsHavePassed) {
  attach();
  for (Version version = 1; version <= 50; ++version) {
    make(version);
    carry_all();
    source_.on_decision(version);
    EXPECT_LE(mine_.versions().size(), 2u);
    EXPECT_LE(theirs_.versions().size(), 2u);
  }
}

TEST_F(ReplicationTest, RefusesFramesOutOfOrder) {
  Outbox out;
  EXPECT_FALSE(intake_.payload_floats({.type = FrameType::kReplica}).ok()) << "nothing announced";
  attach();
  make(1);
  carry_one();  // the announcement
  FrameHeader header = to_standby_.front().header;
  EXPECT_TRUE(intake_.payload_floats(header).ok());
  for (const auto& spoil : std::vector<std::function<void(FrameHeader&)>>{
           [](FrameHeader& each) { each.version = 9; }, [](FrameHeader& each) { each.block = 1; },
           [](FrameHeader& each) { each.place = 3; },
           [](FrameHeader& each) { each.type = FrameType::kBlock; }}) {
    FrameHeader bad = header;
    spoil(bad);
    EXPECT_FALSE(intake_.payload_floats(bad).ok());
  }
  EXPECT_FALSE(intake_.on_floats(header, nullptr, out).ok()) << "the frame has no floats";
  EXPECT_FALSE(intake_.on_floats(header, floats(1, 0.0F), out).ok())
      << "the frame has too few floats";
  EXPECT_FALSE(intake_.on_replica({.kept = {2, kIncarnation}}, out).ok())
      << "the last version is not complete";
  EXPECT_FALSE(source_.on_replicated({.version = 5}, out).ok()) << "that version was never sent";
}

TEST_F(ReplicationTest, AVersionWithoutBlocksIsCompleteAtOnce) {
  attach();
  Outbox out;
  source_.on_version({.shard = 3, .version = 1, .blocks = {}}, kIncarnation, out);
  source_.send_to_coordinator(closing(0), out);
  deliver(std::move(out));
  carry_all();
  EXPECT_EQ(reported_, std::vector<Step>{0});
}

TEST(KeptParts, VersionsOfTwoIncarnationsDiffer) {
  KeptParts kept;
  kept.keep(part(4), 1);
  kept.keep(part(5), 1);
  EXPECT_NE(kept.find({5, 1}), nullptr);
  EXPECT_EQ(kept.find({5, 2}), nullptr);
  kept.keep(part(5), 2);
  EXPECT_EQ(kept.find({5, 1}), nullptr) << "it was replaced";
  kept.keep_only({4, 1});
  EXPECT_EQ(kept.versions(), (std::vector<KeptVersion>{{4, 1}}));
}

}  // namespace
}  // namespace drover
