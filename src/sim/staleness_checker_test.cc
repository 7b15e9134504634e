#include "sim/staleness_checker.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

// Workers 0 and 1 on shard 0, which has two blocks; worker 1 is the slow one.
class StalenessCheckerTest : public ::testing::Test {
 protected:
  void whole(WorkerId worker, Step step) {
    for (int block = 0; block < 2; ++block) book_.on_answer(0, worker, step, 2);
  }
  std::string begin(WorkerId worker, Version version) {
    there_.asked[worker] = version;
    return book_.on_parameters(0, worker, there_, 1);
  }

  ExpectedMembers::AtShard there_{.members = {{0, 0}, {1, 0}}};
  StalenessChecker book_;
};

TEST_F(StalenessCheckerTest, AWorkerMayBeAheadByTheBound) {
  whole(0, 0);
  whole(0, 1);
  whole(1, 0);
  EXPECT_EQ(begin(0, 2), "");
  EXPECT_EQ(begin(0, 3), "worker 0 begins its gradient 3 on shard 0, but worker 1 is at 1");
}

TEST_F(StalenessCheckerTest, AGradientCountsWhenItIsComplete) {
  whole(1, 0);
  book_.on_answer(0, 1, 1, 2);
  EXPECT_NE(begin(0, 3), "");
  book_.on_answer(0, 1, 1, 2);
  EXPECT_EQ(begin(0, 3), "");
}

TEST_F(StalenessCheckerTest, ALostWorkerIsNotWaitedFor) {
  whole(1, 0);
  book_.on_lost(0, 1);
  EXPECT_EQ(begin(0, 5), "");
}

}  // namespace
}  // namespace drover
