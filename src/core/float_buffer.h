// FloatBuffer: aligned floats with a fixed size; BufferPool: gives them out again instead of
// freeing them.
//
// Fresh large buffers cost page faults, which at gradient sizes take as long as moving the bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace drover {

// Tells whether memory that another process can write to still holds what it held: its owner
// changes the word before it writes anything else there.
struct Stamp {
  const std::atomic<uint64_t>* word = nullptr;
  uint64_t value = 0;
};

class FloatBuffer {
 public:
  // Its own memory: 64-byte aligned, zero at first.
  explicit FloatBuffer(size_t size);
  // A view of memory that `keeper` keeps. With a stamp, of memory that belongs to another process.
  FloatBuffer(float* data, size_t size, std::shared_ptr<const void> keeper,
              std::optional<Stamp> stamp = std::nullopt);

  size_t size() const { return size_; }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::span<float> span() { return {data_.get(), size_}; }
  std::span<const float> span() const { return {data_.get(), size_}; }

  // Whether another process can write to it at any time.
  bool foreign() const { return stamp_.has_value(); }
  // Whether what has been read from it until now is what it held when the view was made.
  bool intact() const;

 private:
  struct Free {
    std::shared_ptr<const void> keeper;  // of memory that is not ours to free
    void operator()(float* pointer) const;
  };
  size_t size_;
  std::optional<Stamp> stamp_;
  std::unique_ptr<float[], Free> data_;
};

using SharedBuffer = std::shared_ptr<FloatBuffer>;
using ConstBuffer = std::shared_ptr<const FloatBuffer>;

// Thread-safe. Buffers may outlive the pool.
class BufferPool {
 public:
  // Makes a buffer of so many floats.
  using Make = std::function<std::unique_ptr<FloatBuffer>(size_t)>;

  // New buffers are made by `make`; if there is none, of their own memory.
  explicit BufferPool(Make make = nullptr);
  // A buffer of exactly `size` floats with any content. The one of that size that was let go last,
  // if there is one: it may still be in the cache.
  SharedBuffer take(size_t size);

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
  Make make_;
};

}  // namespace drover
