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

// In front there is a word for every buffer, which says the step that its gradient is of: it is
// changed before the gradient is, so that whoever reads can tell whether it has read one gradient.
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

// The same as a shard sees it.
class GradientView {
 public:
  // Refuses memory that cannot hold a gradient of so many floats.
  static Result<GradientView> map(Descriptor file, size_t floats);

  // A block of the gradient for `step` in buffer `index`. If the worker goes on to another step, it
  // is no longer intact(). REQUIRES: the block lies within the gradient.
  Result<ConstBuffer> block(uint32_t index, Step step, const Block& block) const;

 private:
  GradientView(std::shared_ptr<const SharedMemory> memory, size_t floats, uint32_t buffers)
      : memory_(std::move(memory)), floats_(floats), buffers_(buffers) {}
  std::shared_ptr<const SharedMemory> memory_;
  size_t floats_;
  uint32_t buffers_;
};

// Room for several versions of every block of a shard. A buffer stays where it is as long as
// anybody holds it; what finds no room is made of ordinary memory, and travels over the socket.
class ParameterMemory {
 public:
  // Places are counted in lines of so many bytes.
  static constexpr size_t kLineBytes = 64;

  // Room for the blocks of `shard`.
  Status reserve(const BlockPlan& plan, ShardId shard);
  bool reserved() const { return memory_ != nullptr; }
  int file() const { return memory_->file(); }

  // For a BufferPool: null if there is no room (left).
  std::unique_ptr<FloatBuffer> make(size_t floats);
  // Where these floats lie; nothing if they do not lie here.
  std::optional<uint32_t> place_of(const float* floats) const;

 private:
  std::shared_ptr<SharedMemory> memory_;
  size_t used_ = 0;
  size_t large_until_ = 0;  // pages before this are large, if they can be
};

// What a shard has published at `place`, of `bytes` in all; an error if that is not within.
Result<std::span<const std::byte>> published_at(const SharedMemory& memory, uint32_t place,
                                                size_t bytes);

}  // namespace drover
