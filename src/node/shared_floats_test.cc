// Floats in shared memory: a shard reads a worker's gradient in place and notices when the worker
// has begun another step; a worker reads published parameters, and nothing beyond them.
#include "node/shared_floats.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <set>

namespace drover {
namespace {

constexpr size_t kFloats = 100;
const Block kBlock{.id = 3, .offset = 32, .length = 20};

std::unique_ptr<GradientMemory> gradient(uint32_t buffers) {
  auto memory = GradientMemory::create(kFloats, buffers);
  EXPECT_TRUE(memory.ok()) << memory.error().message;
  return std::move(memory).value();
}

Descriptor copy_of(int file) { return Descriptor(::dup(file)); }

TEST(GradientMemory, IsReadInPlace) {
  for (const uint32_t buffers : {1u, 2u}) {
    const auto memory = gradient(buffers);
    const auto view = GradientView::map(copy_of(memory->file()), kFloats);
    ASSERT_TRUE(view.ok()) << view.error().message;
    for (uint32_t index = 0; index < buffers; ++index) {
      memory->begin(index, 5 + index);
      const SharedBuffer mine = memory->buffer(index);
      std::fill_n(mine->data(), kFloats, 1.0F + static_cast<float>(index));
      const auto block = view.value().block(index, 5 + index, kBlock);
      ASSERT_TRUE(block.ok());
      EXPECT_EQ(block.value()->size(), kBlock.length);
      EXPECT_TRUE(block.value()->foreign());
      EXPECT_TRUE(block.value()->intact());
      EXPECT_EQ(block.value()->data()[19], 1.0F + static_cast<float>(index));
      mine->data()[kBlock.offset] = 7.0F;
      EXPECT_EQ(block.value()->data()[0], 7.0F);
    }
  }
}

TEST(GradientMemory, ABlockIsNotIntactAfterTheWorkerBeginsAnotherStep) {
  const auto memory = gradient(2);
  const auto view = GradientView::map(copy_of(memory->file()), kFloats).value();
  memory->begin(0, 5);
  const ConstBuffer block = view.block(0, 5, kBlock).value();
  EXPECT_TRUE(block->intact());
  EXPECT_FALSE(view.block(0, 4, kBlock).value()->intact()) << "the gradient is of step 5";
  memory->begin(1, 6);
  EXPECT_TRUE(block->intact()) << "step 6 is in the other buffer";
  memory->begin(0, 7);
  EXPECT_FALSE(block->intact());
}

TEST(GradientMemory, ViewsOutliveIt) {
  auto memory = gradient(1);
  memory->begin(0, 1);
  ConstBuffer block;
  {
    const auto view = GradientView::map(copy_of(memory->file()), kFloats).value();
    block = view.block(0, 1, kBlock).value();
  }
  memory.reset();
  EXPECT_EQ(block->data()[0], 0.0F);
}

TEST(GradientView, RefusesMemoryThatIsTooSmallAndBuffersThatDoNotExist) {
  const auto memory = gradient(1);
  EXPECT_FALSE(GradientView::map(copy_of(memory->file()), 10 * kFloats).ok());
  EXPECT_FALSE(GradientView::map(Descriptor(), kFloats).ok());
  const auto view = GradientView::map(copy_of(memory->file()), kFloats).value();
  EXPECT_FALSE(view.block(1, 0, kBlock).ok());
  EXPECT_FALSE(view.block(~0u, 0, kBlock).ok());
}

BlockPlan two_shards() {
  return {.blocks = {{.id = 0, .offset = 0, .length = 40, .shard = 0},
                     {.id = 1, .offset = 48, .length = 100, .shard = 1},
                     {.id = 2, .offset = 160, .length = 3, .shard = 0}},
          .shards = 2};
}

TEST(ParameterMemory, HasSpaceForSeveralVersionsOfItsOwnBlocks) {
  ParameterMemory memory;
  EXPECT_EQ(memory.make(40), nullptr) << "nothing is reserved";
  ASSERT_TRUE(memory.reserve(two_shards(), 0).ok());
  std::vector<std::unique_ptr<FloatBuffer>> made;
  std::set<uint32_t> places;
  for (int version = 0; version < 3; ++version) {
    for (const size_t length : {40u, 3u}) {
      made.push_back(memory.make(length));
      ASSERT_NE(made.back(), nullptr);
      EXPECT_EQ(made.back()->size(), length);
      const auto place = memory.place_of(made.back()->data());
      ASSERT_TRUE(place);
      EXPECT_TRUE(places.insert(*place).second) << "places are distinct";
    }
  }
  while (auto more = memory.make(40)) made.push_back(std::move(more));
  EXPECT_LT(made.size(), 20U) << "the space is limited";
  const FloatBuffer elsewhere(4);
  EXPECT_FALSE(memory.place_of(elsewhere.data()));
}

TEST(ParameterMemory, ParametersAreFoundAtTheirPlaceAndNothingBeyond) {
  ParameterMemory memory;
  ASSERT_TRUE(memory.reserve(two_shards(), 0).ok());
  const auto first = memory.make(40);
  const auto second = memory.make(3);
  second->data()[2] = 5.0F;
  const auto mapped =
      SharedMemory::map(copy_of(memory.file()), 1, 1 << 20, SharedMemory::Pages::kWhenTouched)
          .value();
  const auto found = published_at(*mapped, memory.place_of(second->data()).value(), 12);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(reinterpret_cast<const float*>(found.value().data())[2], 5.0F);
  EXPECT_FALSE(published_at(*mapped, 0, mapped->size() + 1).ok());
  EXPECT_FALSE(published_at(*mapped, ~0u, 4).ok());
  const auto last = static_cast<uint32_t>(mapped->size() / ParameterMemory::kLineBytes);
  EXPECT_FALSE(published_at(*mapped, last, 4).ok());
  EXPECT_TRUE(published_at(*mapped, last - 1, 64).ok());
}

}  // namespace
}  // namespace drover
