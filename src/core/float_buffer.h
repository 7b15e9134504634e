// FloatBuffer: aligned floats with a fixed size; BufferPool: gives them out again instead of
// freeing them.
//
// Fresh large buffers cost page faults, which at gradient sizes take as long as moving the bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace drover {

class FloatBuffer {
 public:
  explicit FloatBuffer(size_t size);

  size_t size() const { return size_; }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::span<float> span() { return {data_.get(), size_}; }
  std::span<const float> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(float* pointer) const;
  };
  size_t size_;
  std::unique_ptr<float[], Free> data_;  // 64-byte aligned, zero at first
};

using SharedBuffer = std::shared_ptr<FloatBuffer>;
using ConstBuffer = std::shared_ptr<const FloatBuffer>;

// Thread-safe. Buffers may outlive the pool.
class BufferPool {
 public:
  BufferPool();
  // A buffer of exactly `size` floats with any content, reused if one of that size has been let go.
  SharedBuffer take(size_t size);

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
};

}  // namespace drover
