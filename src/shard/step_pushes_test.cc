// Which workers have pushed a block in a step, and which are still waited for.
#include "shard/step_pushes.h"

#include <gtest/gtest.h>

#include "wire/header.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

struct Case {
  explicit Case(uint32_t workers) : members(workers), pushes(members) {}
  Membership members;
  StepPushes pushes;
};

TEST(StepPushes, WaitsForEachMemberOnce) {
  Case c(3);
  EXPECT_EQ(c.pushes.missing(), 3u);
  c.pushes.on_push(1, Answer::kAccepted, 5ms, c.members);
  EXPECT_EQ(c.pushes.missing(), 2u);
  EXPECT_EQ(c.pushes.contributed(), 1u);
  EXPECT_TRUE(c.pushes.answered(1));
  ASSERT_EQ(c.pushes.contributions().size(), 1u);
  EXPECT_EQ(c.pushes.contributions()[0].worker, 1u);
  EXPECT_EQ(c.pushes.contributions()[0].at, TimePoint(5ms));
}

TEST(StepPushes, APushThatIsRefusedDoesNotContribute) {
  Case c(2);
  c.pushes.on_push(0, Answer::kNotFinite, 1ms, c.members);
  EXPECT_TRUE(c.pushes.answered(0));
  EXPECT_EQ(c.pushes.missing(), 1u);
  EXPECT_EQ(c.pushes.contributed(), 0u);
}

TEST(StepPushes, AnOverwrittenPushMayBeRepeated) {
  Case c(2);
  c.pushes.on_push(0, Answer::kLate, 1ms, c.members);
  EXPECT_FALSE(c.pushes.answered(0));
  EXPECT_EQ(c.pushes.missing(), 1u) << "but the block does not wait for it";
  c.pushes.on_push(0, Answer::kAccepted, 2ms, c.members);
  EXPECT_EQ(c.pushes.missing(), 1u);
  EXPECT_EQ(c.pushes.contributed(), 1u);
}

TEST(StepPushes, WaitsForGrantedBytesOfAReleasedWorker) {
  Case c(3);
  c.pushes.expect(0);
  c.pushes.release(0, c.members);
  c.pushes.release(1, c.members);
  EXPECT_EQ(c.pushes.missing(), 2u);
  c.pushes.withdraw(0, c.members);
  EXPECT_EQ(c.pushes.missing(), 1u);
  c.pushes.withdraw(2, c.members);
  EXPECT_EQ(c.pushes.missing(), 1u) << "it had no granted bytes";
}

TEST(StepPushes, BytesOfALostWorkerAreNotExpected) {
  Case c(2);
  c.pushes.expect(0);
  c.pushes.stop_expecting(0);
  c.pushes.release(0, c.members);
  EXPECT_EQ(c.pushes.missing(), 1u);
}

TEST(StepPushes, AContributionOfALostWorkerIsUsedButNotCounted) {
  Case c(3);
  c.pushes.on_push(2, Answer::kAccepted, 1ms, c.members);
  c.members.remove(2);
  c.members.remove(1);
  c.pushes.on_members_changed(c.members);
  EXPECT_EQ(c.pushes.missing(), 1u);
  EXPECT_EQ(c.pushes.contributed(), 0u);
  EXPECT_EQ(c.pushes.contributions().size(), 1u);
}

TEST(StepPushes, InTheNextStepAllPushesAreMissingAgain) {
  Case c(3);
  c.pushes.on_push(0, Answer::kAccepted, 1ms, c.members);
  c.pushes.release(1, c.members);
  c.members.remove(2);
  c.pushes.on_members_changed(c.members);
  c.pushes.open_next(c.members);
  EXPECT_EQ(c.pushes.missing(), 2u);
  EXPECT_EQ(c.pushes.contributed(), 0u);
  EXPECT_FALSE(c.pushes.answered(0));
  EXPECT_TRUE(c.pushes.contributions().empty());
}

}  // namespace
}  // namespace drover
