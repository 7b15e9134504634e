#include "sim/share_book.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

class ShareBookTest : public ::testing::Test {
 protected:
  void deal(WorkerId worker, Step from, uint64_t first, uint32_t count) {
    book_.on_share(worker, {.from = from, .first = first, .count = count, .total = 8});
  }
  std::string decide(Step step, std::vector<WorkerId> alive = {0, 1}) {
    return book_.on_decision({.step = step, .cutoff = 1, .alive = std::move(alive)});
  }

  ShareBook book_{{.batch = 4,
                   .least = 0.5,
                   .most = 1.5,
                   .seconds = [](WorkerId worker) { return worker == 0 ? 1.0 : 2.0; },
                   .warmup = 2}};
};

TEST_F(ShareBookTest, HasNothingToSayWhereAllSamplesAreDealtOnce) {
  EXPECT_EQ(decide(0), "");
  deal(0, 1, 0, 5);
  deal(1, 1, 5, 3);
  EXPECT_EQ(decide(1), "");
  EXPECT_EQ(decide(2), "") << "they stay in force";
}

TEST_F(ShareBookTest, SeesASampleThatIsDealtTwice) {
  decide(0);
  deal(0, 1, 0, 5);
  deal(1, 1, 4, 3);
  EXPECT_EQ(decide(1), "a sample of step 1 is dealt to two workers");
}

TEST_F(ShareBookTest, SeesSamplesThatAreNotDealt) {
  decide(0);
  deal(0, 1, 0, 4);
  deal(1, 1, 4, 3);
  EXPECT_EQ(decide(1), "7 samples of step 1 are dealt to 2 workers, of 4 each");
}

TEST_F(ShareBookTest, SeesSamplesBeyondTheEndOfTheStep) {
  decide(0);
  deal(0, 1, 0, 4);
  deal(1, 1, 5, 4);
  EXPECT_EQ(decide(1), "more than the 8 samples of step 1 are dealt");
}

TEST_F(ShareBookTest, SeesSharesBeyondTheirBounds) {
  decide(0);
  deal(0, 1, 0, 8);
  EXPECT_EQ(decide(1), "worker 0 is dealt 8 samples, but the bounds are 2 and 7");
}

TEST_F(ShareBookTest, SeesAnIncarnationThatIsNotToldItsShare) {
  decide(0);
  deal(0, 1, 0, 5);
  deal(1, 1, 5, 3);
  decide(1);
  book_.on_lost(1);
  EXPECT_EQ(decide(2), "") << "it has just come back";
  EXPECT_EQ(decide(3), "worker 1 was not told its share of step 3");
}

TEST_F(ShareBookTest, SeesASlowWorkerThatIsDealtMore) {
  decide(5);
  deal(0, 6, 0, 3);
  deal(1, 6, 3, 5);
  EXPECT_EQ(decide(6), "worker 1 is slower than worker 0, but is dealt 5 samples and not 3");
}

TEST_F(ShareBookTest, AllowsASlowWorkerMoreBeforeItIsKnown) {
  decide(2);
  deal(0, 3, 0, 3);
  deal(1, 3, 3, 5);
  EXPECT_EQ(decide(3), "");
}

TEST_F(ShareBookTest, AShareMayBeUsedWhenItIsInForce) {
  deal(0, 3, 0, 5);
  EXPECT_TRUE(book_.may_use(0, 2, 5).empty());
  EXPECT_EQ(book_.may_use(0, 3, 5).size(), 1u);
  EXPECT_TRUE(book_.may_use(0, 3, 4).empty()) << "a share of another size";
  EXPECT_TRUE(book_.may_use(1, 3, 5).empty()) << "another worker's";
}

TEST_F(ShareBookTest, ADisplacedShareMayBeUsedBeforeIt) {
  deal(0, 3, 0, 5);
  deal(0, 4, 0, 3);
  EXPECT_EQ(book_.may_use(0, 2, 5).size(), 1u);
  EXPECT_TRUE(book_.may_use(0, 2, 3).empty());
}

TEST_F(ShareBookTest, KnowsNothingOfAnEarlierIncarnationOfTheRun) {
  decide(0);
  deal(0, 1, 0, 5);
  book_.restart();
  EXPECT_EQ(decide(1), "");
  EXPECT_TRUE(book_.may_use(0, 1, 5).empty());
}

}  // namespace
}  // namespace drover
