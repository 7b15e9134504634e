// A worker's samples are those of its share, from the step on that the share applies to.
#include "worker/sample_share.h"

#include <gtest/gtest.h>

#include <vector>

namespace drover {
namespace {

void expect_batch(const Batch& batch, uint64_t first, uint32_t count) {
  EXPECT_EQ(batch.first, first);
  EXPECT_EQ(batch.count, count);
  EXPECT_EQ(batch.parts, 1u);
}

TEST(SampleShare, IsInitiallyEqualForAllWorkers) {
  const SampleShare share(2, 4, 8);
  expect_batch(share.batch_of(0), 16, 8);
  expect_batch(share.batch_of(5), 5 * 32 + 16, 8);
}

TEST(SampleShare, ChangesFromItsStepOn) {
  SampleShare share(2, 4, 8);
  share.on_share({.from = 10, .first = 20, .count = 3, .total = 32});
  expect_batch(share.batch_of(9), 9 * 32 + 16, 8);
  expect_batch(share.batch_of(10), 10 * 32 + 20, 3);
  share.on_share({.from = 12, .first = 4, .count = 5, .total = 40});
  expect_batch(share.batch_of(11), 11 * 32 + 20, 3);
  expect_batch(share.batch_of(12), 12 * 40 + 4, 5);
}

TEST(SampleShare, ALaterShareReplacesOneForTheSameStep) {
  SampleShare share(0, 2, 8);
  share.on_share({.from = 10, .first = 1, .count = 3, .total = 32});
  share.on_share({.from = 10, .first = 2, .count = 4, .total = 32});
  expect_batch(share.batch_of(10), 322, 4);
  expect_batch(share.batch_of(9), 9 * 16, 8);
  share.on_share({.from = 7, .first = 3, .count = 5, .total = 32});
  expect_batch(share.batch_of(10), 323, 5);
}

TEST(SampleShare, RemembersOnlyTheNewest) {
  SampleShare share(0, 2, 8);
  for (Step from = 1; from <= 5; ++from)
    share.on_share({.from = from, .first = 0, .count = static_cast<uint32_t>(from), .total = 16});
  EXPECT_EQ(share.batch_of(5).count, 5u);
  EXPECT_EQ(share.batch_of(4).count, 4u);
  EXPECT_EQ(share.batch_of(1).count, 4u) << "so old a step is not computed any more";
}

TEST(SampleShare, SharesOfAStepCoverItWithoutOverlap) {
  const std::vector<uint32_t> counts = {1, 7, 3, 5};
  std::vector<int> used(16, 0);
  uint64_t first = 0;
  for (WorkerId worker = 0; worker < counts.size(); ++worker) {
    SampleShare share(worker, 4, 4);
    share.on_share({.from = 0, .first = first, .count = counts[worker], .total = 16});
    first += counts[worker];
    const Batch batch = share.batch_of(3);
    for (uint32_t i = 0; i < batch.count; ++i) ++used.at(batch.first + i - 48);
  }
  EXPECT_EQ(used, std::vector<int>(16, 1));
}

TEST(SampleShare, AWorkerWithItsOwnPartHasItsOwnStream) {
  SampleShare share(1, 3, 8, /*own_part=*/true);
  EXPECT_EQ(share.batch_of(5).first, 40u);
  EXPECT_EQ(share.batch_of(5).part, 1u);
  EXPECT_EQ(share.batch_of(5).parts, 3u);
  share.on_share({.from = 6, .first = 9, .count = 2, .total = 24});
  EXPECT_EQ(share.batch_of(6).first, 12u);
  EXPECT_EQ(share.batch_of(6).count, 2u);
}

}  // namespace
}  // namespace drover
