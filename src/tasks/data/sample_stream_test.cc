// Without parts the stream is that of the run. With parts every worker has its own samples, and
// together they have all samples.
#include "tasks/data/sample_stream.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/random_draw.h"

namespace drover {
namespace {

Dataset labelled(uint64_t size, uint32_t classes) {
  Dataset dataset;
  dataset.kind = DataKind::kRows;
  dataset.classes = classes;
  for (uint64_t i = 0; i < size; ++i)
    dataset.train.labels.push_back(static_cast<uint32_t>(mix_bits(i) % classes));
  return dataset;
}

// How often each sample occurs in one epoch of a part.
std::map<uint64_t, int> epoch(const SampleStream& stream, uint32_t part, uint32_t parts,
                              uint64_t size, uint64_t number) {
  const uint64_t mine = size * (part + 1) / parts - size * part / parts;
  std::map<uint64_t, int> seen;
  for (uint64_t i = 0; i < mine; ++i)
    ++seen[stream.at({.first = number * mine, .count = 1, .part = part, .parts = parts},
                     static_cast<uint32_t>(i))];
  return seen;
}

TEST(SampleStream, WithoutPartsIsTheStreamOfTheRun) {
  for (const DataPartition partition :
       {DataPartition::kNone, DataPartition::kRandom, DataPartition::kLabel}) {
    const SampleStream stream(partition, 7, labelled(50, 3), 50);
    for (uint32_t i = 0; i < 120; ++i)
      EXPECT_EQ(stream.at({.first = 30, .count = 120}, i), sample_at(7, 50, 30 + i));
  }
}

TEST(SampleStream, PartsAreDisjointAndCoverEverything) {
  Dataset text;
  text.kind = DataKind::kText;
  for (const uint64_t size : {12u, 101u, 1'000u}) {
    for (const uint32_t parts : {2u, 3u, 12u}) {
      for (const auto& [partition, dataset] :
           {std::pair{DataPartition::kRandom, labelled(size, 10)},
            {DataPartition::kLabel, labelled(size, 10)},
            {DataPartition::kRandom, text}}) {
        SCOPED_TRACE(testing::Message() << size << " samples, " << parts << " parts");
        const SampleStream stream(partition, 5, dataset, size);
        std::map<uint64_t, int> all;
        for (uint32_t part = 0; part < parts; ++part) {
          const auto seen = epoch(stream, part, parts, size, 0);
          EXPECT_EQ(seen, epoch(stream, part, parts, size, 3)) << "a part keeps its samples";
          for (const auto& [sample, times] : seen) all[sample] += times;
        }
        ASSERT_EQ(all.size(), size);
        EXPECT_EQ(all.rbegin()->first, size - 1);
        for (const auto& [sample, times] : all) ASSERT_EQ(times, 1) << sample;
      }
    }
  }
}

TEST(SampleStream, PartsByLabelSeeFewLabelsAndRandomOnesAll) {
  const Dataset dataset = labelled(4'000, 10);
  for (const auto& [partition, least, most] :
       {std::tuple{DataPartition::kRandom, 10u, 10u}, {DataPartition::kLabel, 1u, 3u}}) {
    const SampleStream stream(partition, 5, dataset, 4'000);
    for (uint32_t part = 0; part < 8; ++part) {
      std::set<uint32_t> labels;
      for (const auto& [sample, times] : epoch(stream, part, 8, 4'000, 0))
        labels.insert(dataset.train.labels[sample]);
      EXPECT_GE(labels.size(), least);
      EXPECT_LE(labels.size(), most) << "an eighth of the data has two or three of ten labels";
    }
  }
}

TEST(SampleStream, APartOfATextIsOneStretchOfIt) {
  Dataset text;
  text.kind = DataKind::kText;
  const SampleStream stream(DataPartition::kRandom, 5, text, 100);
  for (const auto& [sample, times] : epoch(stream, 1, 4, 100, 0)) {
    EXPECT_GE(sample, 25u);
    EXPECT_LT(sample, 50u);
  }
}

TEST(SampleStream, EveryPartHasASampleForAnyNumberOfParts) {
  const SampleStream stream(DataPartition::kLabel, 5, labelled(3, 2), 3);
  for (uint32_t part = 0; part < 10; ++part)
    EXPECT_LT(stream.at({.first = 100, .count = 1, .part = part, .parts = 10}, 0), 3u);
}

TEST(SampleStream, PartsDependOnTheSeed) {
  const Dataset dataset = labelled(1'000, 10);
  const auto mine = [&](uint64_t seed) {
    return epoch(SampleStream(DataPartition::kRandom, seed, dataset, 1'000), 0, 4, 1'000, 0);
  };
  EXPECT_EQ(mine(1), mine(1));
  EXPECT_NE(mine(1), mine(2));
}

TEST(SampleStream, RefusesTextByLabel) {
  Dataset text;
  text.kind = DataKind::kText;
  EXPECT_FALSE(check_partition(DataPartition::kLabel, text).ok());
  EXPECT_TRUE(check_partition(DataPartition::kRandom, text).ok());
  EXPECT_TRUE(check_partition(DataPartition::kLabel, labelled(3, 2)).ok());
}

}  // namespace
}  // namespace drover
