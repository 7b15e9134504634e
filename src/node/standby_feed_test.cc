#include "node/standby_feed.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "net/test_loop.h"
#include "node/test_channels.h"

namespace drover {
namespace {

class StandbyFeedTest : public LoopTest {
 protected:
  void attach(ChannelPair& standby) {
    standby.near->start({});
    feed_.attach(standby.near);
  }
  void make(Version version) {
    CheckpointPart part{.version = version};
    part.blocks.push_back(
        {.offset = 0, .length = 4, .parameters = std::make_shared<FloatBuffer>(4)});
    feed_.on_version(std::move(part), 1);
  }
  void close(Step step) {
    feed_.send_to_coordinator({to_coordinator(), control_frame(StepClosed{.step = step})});
  }

  KeptParts kept_;
  std::vector<Step> reported_;  // to the coordinator
  StandbyFeed feed_{
      0, kept_, [this](Frame frame) {
        reported_.push_back(std::get<StepClosed>(std::get<Control>(frame.payload)).step);
      }};
};

TEST_F(StandbyFeedTest, WithoutAStandbyReportsAreSentAtOnce) {
  make(1);
  close(0);
  EXPECT_EQ(reported_, std::vector<Step>{0});
}

TEST_F(StandbyFeedTest, AReportIsSentWhenTheStandbyHasTheStep) {
  ChannelPair standby(loop_);
  attach(standby);
  make(1);
  close(0);
  ASSERT_TRUE(run_until([&] { return standby.frames.size() == 1; })) << "its floats";
  ASSERT_EQ(standby.controls.size(), 1u);
  EXPECT_EQ(std::get<Replica>(standby.controls[0]).kept.version, 1u);
  EXPECT_TRUE(reported_.empty());
  standby.far->send(control_frame(Replicated{.version = 1}));
  ASSERT_TRUE(run_until([&] { return !reported_.empty(); }));
  EXPECT_EQ(reported_, std::vector<Step>{0});
}

TEST_F(StandbyFeedTest, NothingIsHeldBackForAStandbyThatIsLost) {
  ChannelPair standby(loop_);
  attach(standby);
  make(1);
  close(0);
  standby.far->close();
  ASSERT_TRUE(run_until([&] { return !reported_.empty(); }));
}

TEST_F(StandbyFeedTest, AnotherStandbyReplacesOneWhoseEndIsNotNoticedYet) {
  ChannelPair first(loop_);
  ChannelPair second(loop_);
  attach(first);
  make(1);
  attach(second);
  ASSERT_TRUE(run_until([&] { return first.closed && second.frames.size() == 1; }));
  EXPECT_EQ(std::get<Replica>(second.controls.at(0)).kept.version, 1u)
      << "it gets all that is kept";
}

TEST_F(StandbyFeedTest, AnUnexpectedMessageEndsTheConnection) {
  ChannelPair standby(loop_);
  attach(standby);
  make(1);
  close(0);
  standby.far->send(control_frame(Ready{}));
  ASSERT_TRUE(run_until([&] { return standby.closed && !reported_.empty(); }));
}

}  // namespace
}  // namespace drover
