// Gradients and parameters in memory that processes on one host share: GradientMemory is a
// worker's, which shards read in place; ParameterMemory a shard's, which workers read in place.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/float_buffer.h"
#include "core/ids.h"
#include "core/layout.h"
#include "core/result.h"
#include "net/shared_memory.h"

namespace drover {

// Whether processes share memory: `--transport`.
enum class Sharing : uint8_t { kNo, kIfPossible, kMust };

// In front of the buffers there is a word for each, with the step of its gradient. The word is
// changed before the gradient is, so that a reader can check that it has read one step's gradient.
class GradientMemory {
 public:
  static Result<std::unique_ptr<GradientMemory>> create(size_t floats, uint32_t buffers);

  SharedBuffer buffer(uint32_t index);
  // From here on the buffer belongs to `step`.
  void begin(uint32_t index, Step step);
  int file() const { return memory_->file(); }

 private:
  GradientMemory(std::shared_ptr<SharedMemory> memory, size_t floats)
      : memory_(std::move(memory)), floats_(floats) {}
  std::shared_ptr<SharedMemory> memory_;
  size_t floats_;
};

// A shard's mapping of a worker's GradientMemory.
class GradientView {
 public:
  // Refuses memory that cannot hold a gradient of so many floats.
  static Result<GradientView> map(Descriptor file, size_t floats);

  // A block of the gradient for `step` in buffer `index`. It is no longer intact() when the worker
  // begins another step there. REQUIRES: the block lies within the gradient.
  Result<ConstBuffer> block(uint32_t index, Step step, const Block& block) const;

 private:
  GradientView(std::shared_ptr<const SharedMemory> memory, size_t floats, uint32_t buffers)
      : memory_(std::move(memory)), floats_(floats), buffers_(buffers) {}
  std::shared_ptr<const SharedMemory> memory_;
  size_t floats_;
  uint32_t buffers_;
};

// Space for several versions of every block of a shard. When it is used up, buffers are made of
// ordinary memory, and their floats travel over the socket.
class ParameterMemory {
 public:
  // Places are counted in lines of so many bytes.
  static constexpr size_t kLineBytes = 64;

  // Makes space for the blocks of `shard`.
  Status reserve(const BlockPlan& plan, ShardId shard);
  bool reserved() const { return memory_ != nullptr; }
  int file() const { return memory_->file(); }

  // For a BufferPool: null if no space is left, or none was reserved.
  std::unique_ptr<FloatBuffer> make(size_t floats);
  // The place of these floats; nothing if they are not in this memory.
  std::optional<uint32_t> place_of(const float* floats) const;

 private:
  std::shared_ptr<SharedMemory> memory_;
  size_t used_ = 0;
  size_t large_until_ = 0;  // large pages were requested up to here
};

// The `bytes` that a shard has published at `place`; an error if they are not within the memory.
Result<std::span<const std::byte>> published_at(const SharedMemory& memory, uint32_t place,
                                                size_t bytes);

}  // namespace drover
