// Buffers are aligned and initially zero. A pool reuses buffers, with one owner at a time, from any
// thread, and buffers may outlive it.
#include "core/float_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

namespace drover {
namespace {

bool aligned(const FloatBuffer& buffer) {
  return reinterpret_cast<uintptr_t>(buffer.data()) % 64 == 0;
}

TEST(FloatBuffer, IsAlignedAndInitiallyZero) {
  for (const size_t size : {0U, 1U, 15U, 16U, 17U, 100'000U}) {
    const FloatBuffer buffer(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(buffer.span().size(), size);
    EXPECT_TRUE(aligned(buffer));
    EXPECT_TRUE(std::all_of(buffer.span().begin(), buffer.span().end(),
                            [](float value) { return value == 0.0F; }));
  }
}

TEST(FloatBuffer, KeepsItsFloatsWhenMoved) {
  FloatBuffer from(3);
  from.span()[2] = 5.0F;
  const float* data = from.data();
  const FloatBuffer to = std::move(from);
  EXPECT_EQ(to.data(), data);
  EXPECT_EQ(to.span()[2], 5.0F);
}

TEST(BufferPool, ReusesAReleasedBuffer) {
  BufferPool pool;
  SharedBuffer first = pool.take(100);
  const float* data = first->data();
  first.reset();
  const SharedBuffer again = pool.take(100);
  EXPECT_EQ(again->data(), data);
  EXPECT_TRUE(aligned(*again));
}

TEST(BufferPool, ABufferHasOneOwnerAtATime) {
  BufferPool pool;
  pool.take(10).reset();
  std::vector<SharedBuffer> held;
  std::set<const float*> data;
  for (int i = 0; i < 10; ++i) {
    held.push_back(pool.take(10));
    data.insert(held.back()->data());
  }
  EXPECT_EQ(data.size(), 10U);
}

TEST(BufferPool, GivesExactlyTheRequestedSize) {
  BufferPool pool;
  pool.take(100).reset();
  EXPECT_EQ(pool.take(99)->size(), 99U);
  EXPECT_EQ(pool.take(101)->size(), 101U);
  EXPECT_EQ(pool.take(100)->size(), 100U);
}

TEST(BufferPool, ReusesABufferOnlyAfterItsLastReference) {
  BufferPool pool;
  SharedBuffer first = pool.take(4);
  const ConstBuffer reader = first;
  first.reset();
  EXPECT_NE(pool.take(4)->data(), reader->data());
}

TEST(BufferPool, BuffersMayOutliveThePool) {
  SharedBuffer buffer;
  {
    BufferPool pool;
    buffer = pool.take(8);
  }
  buffer->span()[7] = 1.0F;
  EXPECT_EQ(buffer->span()[7], 1.0F);
  buffer.reset();  // the address sanitizer checks this
}

TEST(BufferPool, IsThreadSafe) {
  BufferPool pool;
  std::vector<std::thread> threads;
  std::vector<int> clashes(4, 0);
  threads.reserve(clashes.size());
  for (size_t thread = 0; thread < clashes.size(); ++thread) {
    threads.emplace_back([&pool, &clash = clashes[thread], thread] {
      const auto mark = static_cast<float>(thread + 1);
      for (size_t i = 0; i < 2000; ++i) {
        const SharedBuffer buffer = pool.take(16 + i % 3);
        std::fill(buffer->span().begin(), buffer->span().end(), mark);
        for (const float value : buffer->span()) clash += value == mark ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace drover
