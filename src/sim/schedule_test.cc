#include "sim/schedule.h"

#include <gtest/gtest.h>

#include <vector>

namespace drover {
namespace {

using namespace std::chrono_literals;

class ScheduleTest : public ::testing::Test {
 protected:
  void at(const Trigger& trigger, int number) {
    schedule_.at(trigger, [this, number] { happened_.push_back(number); });
  }
  void run() {
    while (time_.advance()) continue;
  }

  EventQueue time_;
  Schedule schedule_{time_};
  std::vector<int> happened_;
};

TEST_F(ScheduleTest, RunsAnEventAtItsTime) {
  at({.step = std::nullopt, .at = 2s}, 2);
  at({.step = std::nullopt, .at = 1s}, 1);
  run();
  EXPECT_EQ(happened_, (std::vector{1, 2}));
  EXPECT_EQ(time_.now(), TimePoint(2s));
}

TEST_F(ScheduleTest, RunsAnEventWhenItsStepOpens) {
  at({.step = 3}, 3);
  at({.step = 4}, 4);
  at({.step = 3}, 33);
  run();
  EXPECT_TRUE(happened_.empty());
  schedule_.on_step(3);
  EXPECT_TRUE(happened_.empty()) << "after events that are already due";
  run();
  EXPECT_EQ(happened_, (std::vector{3, 33}));
}

TEST_F(ScheduleTest, RunsAnEventOnceIfItsStepOpensAgain) {
  at({.step = 3}, 3);
  schedule_.on_step(3);
  schedule_.on_step(3);
  run();
  EXPECT_EQ(happened_, (std::vector{3}));
}

}  // namespace
}  // namespace drover
