// Offers are granted in order of arrival, and never with more bytes in flight than the window.
#include "shard/offer_queue.h"

#include <gtest/gtest.h>

#include <random>

#include "wire/limits.h"

namespace drover {
namespace {

TEST(OfferQueue, GrantsInOrderOfArrivalUpToTheWindow) {
  OfferQueue queue(100);
  queue.add({.worker = 2, .step = 0, .block = 0, .bytes = 60});
  queue.add({.worker = 1, .step = 0, .block = 0, .bytes = 60});
  queue.add({.worker = 0, .step = 0, .block = 0, .bytes = 10});
  const auto first = queue.grant();
  ASSERT_EQ(first.size(), 1u) << "the second does not fit, and the third must not overtake it";
  EXPECT_EQ(first[0].worker, 2u);
  EXPECT_TRUE(queue.take(2, 0, 0));
  EXPECT_EQ(queue.grant().size(), 2u);
}

TEST(OfferQueue, TakesAnOfferOnce) {
  OfferQueue queue(100);
  const Offer offer{.worker = 0, .step = 3, .block = 1, .bytes = 10};
  EXPECT_EQ(queue.add(offer), OfferQueue::Added::kYes);
  EXPECT_EQ(queue.add(offer), OfferQueue::Added::kAgain) << "it is waiting";
  queue.grant();
  EXPECT_EQ(queue.add(offer), OfferQueue::Added::kAgain) << "it is in flight";
  EXPECT_EQ(queue.pending(), 1u);
  EXPECT_TRUE(queue.take(0, 3, 1));
  EXPECT_EQ(queue.add(offer), OfferQueue::Added::kYes);
}

TEST(OfferQueue, LimitsOpenOffersOfAWorker) {
  OfferQueue queue(100);
  for (Step step = 0; step < kOffersOpenMax; ++step)
    ASSERT_EQ(queue.add({.worker = 0, .step = step, .block = 1}), OfferQueue::Added::kYes);
  const Offer more{.worker = 0, .step = kOffersOpenMax, .block = 1};
  EXPECT_EQ(queue.add(more), OfferQueue::Added::kTooMany);
  EXPECT_EQ(queue.add({.worker = 0, .step = 0, .block = 2}), OfferQueue::Added::kYes);
  EXPECT_EQ(queue.add({.worker = 1, .step = 0, .block = 1}), OfferQueue::Added::kYes);
  EXPECT_EQ(queue.withdraw_late(1, 2).size(), 3u)
      << "two offers of the first worker, one of the second";
  EXPECT_EQ(queue.add(more), OfferQueue::Added::kYes);
  queue.forget(0);
  EXPECT_EQ(queue.add(more), OfferQueue::Added::kYes);
}

TEST(OfferQueue, GrantsOneBlockHoweverLarge) {
  OfferQueue queue(10);
  queue.add({.worker = 0, .step = 0, .block = 0, .bytes = 1000});
  EXPECT_EQ(queue.grant().size(), 1u);
}

TEST(OfferQueue, TakesOnlyGrantedOffers) {
  OfferQueue queue(100);
  queue.add({.worker = 0, .step = 3, .block = 1, .bytes = 10});
  EXPECT_FALSE(queue.take(0, 3, 1)) << "offered, but not granted";
  queue.grant();
  EXPECT_FALSE(queue.take(0, 4, 1));
  EXPECT_TRUE(queue.take(0, 3, 1));
  EXPECT_FALSE(queue.take(0, 3, 1)) << "already taken";
}

TEST(OfferQueue, ALostWorkerFreesItsPartOfTheWindow) {
  OfferQueue queue(100);
  queue.add({.worker = 0, .step = 0, .block = 0, .bytes = 100});
  queue.add({.worker = 1, .step = 0, .block = 0, .bytes = 100});
  queue.grant();
  EXPECT_TRUE(queue.grant().empty());
  queue.forget(0);
  ASSERT_EQ(queue.grant().size(), 1u);
}

TEST(OfferQueue, WithdrawsOnlyLateOffers) {
  OfferQueue queue(1);
  queue.add({.worker = 0, .step = 0, .block = 0, .bytes = 10});
  queue.grant();
  queue.add({.worker = 1, .step = 0, .block = 5, .bytes = 10});
  queue.add({.worker = 2, .step = 1, .block = 5, .bytes = 10});
  queue.add({.worker = 3, .step = 0, .block = 6, .bytes = 10});
  const auto late = queue.withdraw_late(5, 1);
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].worker, 1u);
}

TEST(OfferQueue, AGrantForAClosedStepDoesNotFillTheWindow) {
  OfferQueue queue(100);
  queue.add({.worker = 0, .step = 0, .block = 0, .bytes = 100});
  queue.grant();
  queue.add({.worker = 1, .step = 1, .block = 0, .bytes = 100});
  EXPECT_TRUE(queue.grant().empty());
  queue.withdraw_late(0, 1);
  EXPECT_EQ(queue.grant().size(), 1u) << "worker 0 may never send its granted block";
  EXPECT_TRUE(queue.take(0, 0, 0)) << "but it may still send it";
}

TEST(OfferQueue, KeepsItsWindowUnderRandomUse) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    OfferQueue queue(1000);
    std::vector<Offer> granted;
    size_t offered = 0;
    size_t ended = 0;
    while (offered < 200 || !granted.empty()) {
      if (offered < 200 && random() % 2 == 0) {
        queue.add({.worker = static_cast<WorkerId>(offered),
                   .step = 0,
                   .block = 0,
                   .bytes = 1 + random() % 600});
        ++offered;
      } else if (!granted.empty()) {
        const size_t which = random() % granted.size();
        ASSERT_TRUE(queue.take(granted[which].worker, 0, 0));
        granted.erase(granted.begin() + static_cast<std::ptrdiff_t>(which));
        ++ended;
      }
      for (const Offer& offer : queue.grant()) granted.push_back(offer);
      ASSERT_TRUE(queue.bytes_under_way() <= 1000 || granted.size() == 1);
    }
    ASSERT_EQ(ended, 200u) << "every offer is granted in the end";
  }
}

}  // namespace
}  // namespace drover
