// FloatBuffer: aligned floats with a fixed size. BufferPool: reuses buffers instead of freeing
// them.
//
// A new large buffer costs page faults, which at gradient sizes take as long as copying the bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace drover {

// Detects changes of memory that another process can write to: the owner changes `word` before it
// overwrites the memory. The content is unchanged as long as `word` is `value`.
struct Stamp {
  const std::atomic<uint64_t>* word = nullptr;
  uint64_t value = 0;
};

class FloatBuffer {
 public:
  // Allocates memory: 64-byte aligned, zeros.
  explicit FloatBuffer(size_t size);
  // A view of memory that `keeper` keeps alive. With a stamp, the memory belongs to another
  // process.
  FloatBuffer(float* data, size_t size, std::shared_ptr<const void> keeper,
              std::optional<Stamp> stamp = std::nullopt);

  size_t size() const { return size_; }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::span<float> span() { return {data_.get(), size_}; }
  std::span<const float> span() const { return {data_.get(), size_}; }

  // Whether another process can write to it at any time.
  bool foreign() const { return stamp_.has_value(); }
  // Whether the content is still that of the moment when the view was made.
  bool intact() const;

 private:
  struct Free {
    std::shared_ptr<const void> keeper;  // if set, it owns the memory
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
  // Makes a buffer of this number of floats.
  using Make = std::function<std::unique_ptr<FloatBuffer>(size_t)>;

  // `make` makes new buffers; null: the buffers allocate their memory.
  explicit BufferPool(Make make = nullptr);
  // A buffer of exactly `size` floats with any content: the one of that size that was released
  // last, since it may still be in the CPU's cache, or a new one.
  SharedBuffer take(size_t size);

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
  Make make_;
};

}  // namespace drover
