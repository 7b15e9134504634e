#include "sim/moments.h"

#include <gtest/gtest.h>

#include <vector>

namespace drover {
namespace {

using namespace std::chrono_literals;

class MomentsTest : public ::testing::Test {
 protected:
  void at(const Moment& moment, int number) {
    moments_.at(moment, [this, number] { happened_.push_back(number); });
  }
  void run() {
    while (time_.advance()) continue;
  }

  EventQueue time_;
  Moments moments_{time_};
  std::vector<int> happened_;
};

TEST_F(MomentsTest, ATimeIsATime) {
  at({.step = std::nullopt, .at = 2s}, 2);
  at({.step = std::nullopt, .at = 1s}, 1);
  run();
  EXPECT_EQ(happened_, (std::vector{1, 2}));
  EXPECT_EQ(time_.now(), TimePoint(2s));
}

TEST_F(MomentsTest, AStepIsWhenItOpens) {
  at({.step = 3}, 3);
  at({.step = 4}, 4);
  at({.step = 3}, 33);
  run();
  EXPECT_TRUE(happened_.empty());
  moments_.on_step(3);
  EXPECT_TRUE(happened_.empty()) << "after what is under way";
  run();
  EXPECT_EQ(happened_, (std::vector{3, 33}));
}

TEST_F(MomentsTest, AStepThatOpensAgainIsNoOther) {
  at({.step = 3}, 3);
  moments_.on_step(3);
  moments_.on_step(3);
  run();
  EXPECT_EQ(happened_, (std::vector{3}));
}

}  // namespace
}  // namespace drover
