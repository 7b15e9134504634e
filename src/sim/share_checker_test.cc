#include "sim/share_checker.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

class ShareCheckerTest : public ::testing::Test {
 protected:
  void deal(WorkerId worker, Step from, uint64_t first, uint32_t count) {
    book_.on_share(worker, {.from = from, .first = first, .count = count, .total = 8});
  }
  std::string decide(Step step, std::vector<WorkerId> alive = {0, 1}) {
    return book_.on_decision({.step = step, .cutoff = 1, .alive = std::move(alive)});
  }

  ShareChecker book_{{.batch = 4,
                      .least = 0.5,
                      .most = 1.5,
                      .seconds = [](WorkerId worker) { return worker == 0 ? 1.0 : 2.0; },
                      .warmup = 2}};
};

TEST_F(ShareCheckerTest, AcceptsSharesThatAssignAllSamplesOnce) {
  EXPECT_EQ(decide(0), "");
  deal(0, 1, 0, 5);
  deal(1, 1, 5, 3);
  EXPECT_EQ(decide(1), "");
  EXPECT_EQ(decide(2), "") << "the shares stay in force";
}

TEST_F(ShareCheckerTest, FindsASampleThatIsAssignedTwice) {
  decide(0);
  deal(0, 1, 0, 5);
  deal(1, 1, 4, 3);
  EXPECT_EQ(decide(1), "a sample of step 1 is assigned to two workers");
}

TEST_F(ShareCheckerTest, FindsSamplesThatAreNotAssigned) {
  decide(0);
  deal(0, 1, 0, 4);
  deal(1, 1, 4, 3);
  EXPECT_EQ(decide(1), "7 samples of step 1 are assigned to 2 workers, instead of 4 each");
}

TEST_F(ShareCheckerTest, FindsSamplesBeyondTheEndOfTheStep) {
  decide(0);
  deal(0, 1, 0, 4);
  deal(1, 1, 5, 4);
  EXPECT_EQ(decide(1), "more than the 8 samples of step 1 are assigned");
}

TEST_F(ShareCheckerTest, FindsSharesBeyondTheirBounds) {
  decide(0);
  deal(0, 1, 0, 8);
  EXPECT_EQ(decide(1), "worker 0 gets 8 samples, but the bounds are 2 and 7");
}

TEST_F(ShareCheckerTest, FindsARestartedWorkerThatIsNotSentItsShare) {
  decide(0);
  deal(0, 1, 0, 5);
  deal(1, 1, 5, 3);
  decide(1);
  book_.on_lost(1);
  EXPECT_EQ(decide(2), "") << "it has just joined again";
  EXPECT_EQ(decide(3), "worker 1 was not sent its share of step 3");
}

TEST_F(ShareCheckerTest, FindsASlowWorkerThatGetsMoreSamples) {
  decide(5);
  deal(0, 6, 0, 3);
  deal(1, 6, 3, 5);
  EXPECT_EQ(decide(6), "worker 1 is slower than worker 0, but gets 5 samples instead of 3");
}

TEST_F(ShareCheckerTest, AllowsASlowWorkerMoreSamplesDuringTheWarmUp) {
  decide(2);
  deal(0, 3, 0, 3);
  deal(1, 3, 3, 5);
  EXPECT_EQ(decide(3), "");
}

TEST_F(ShareCheckerTest, AShareMayBeUsedOnceInForce) {
  deal(0, 3, 0, 5);
  EXPECT_TRUE(book_.may_use(0, 2, 5).empty());
  EXPECT_EQ(book_.may_use(0, 3, 5).size(), 1u);
  EXPECT_TRUE(book_.may_use(0, 3, 4).empty()) << "a share of another size";
  EXPECT_TRUE(book_.may_use(1, 3, 5).empty()) << "another worker's";
}

TEST_F(ShareCheckerTest, AShareThatWasDisplacedMayBeUsedEarly) {
  deal(0, 3, 0, 5);
  deal(0, 4, 0, 3);
  EXPECT_EQ(book_.may_use(0, 2, 5).size(), 1u);
  EXPECT_TRUE(book_.may_use(0, 2, 3).empty());
}

TEST_F(ShareCheckerTest, ARestartDiscardsShares) {
  decide(0);
  deal(0, 1, 0, 5);
  book_.restart();
  EXPECT_EQ(decide(1), "");
  EXPECT_TRUE(book_.may_use(0, 1, 5).empty());
}

}  // namespace
}  // namespace drover
