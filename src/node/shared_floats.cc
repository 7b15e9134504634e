#include "node/shared_floats.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/check.h"

namespace drover {
namespace {

using Word = std::atomic<uint64_t>;
static_assert(Word::is_always_lock_free, "words in shared memory must not need a lock");

constexpr size_t kWordsBytes = 4096;  // a page, so that the floats are aligned
constexpr uint32_t kBuffersMax = 2;
constexpr Step kNoStep = ~Step{0};  // the word of a buffer without a gradient
constexpr size_t kFloatsPerLine = ParameterMemory::kLineBytes / sizeof(float);

// Versions of each block: the one being read, the one being made, two for evaluation, one for a
// checkpoint under way, two for workers that are slow to read, and three for a standby. Pages that
// are not needed are never touched.
constexpr size_t kVersions = 10;

size_t bytes_for(size_t floats, uint32_t buffers) {
  return kWordsBytes + floats * sizeof(float) * buffers;
}

size_t in_lines(size_t floats) { return (floats + kFloatsPerLine - 1) / kFloatsPerLine; }

}  // namespace

Result<std::unique_ptr<GradientMemory>> GradientMemory::create(size_t floats, uint32_t buffers) {
  DROVER_CHECK(buffers >= 1 && buffers <= kBuffersMax);
  auto memory = SharedMemory::create(bytes_for(floats, buffers), "a worker's gradient",
                                     SharedMemory::Pages::kAtOnce);
  if (!memory) return memory.error();
  std::unique_ptr<GradientMemory> made(new GradientMemory(std::move(memory).value(), floats));
  for (uint32_t index = 0; index < buffers; ++index) made->begin(index, kNoStep);
  return made;
}

SharedBuffer GradientMemory::buffer(uint32_t index) {
  std::byte* const begin = memory_->data() + bytes_for(floats_, index);
  return std::make_shared<FloatBuffer>(reinterpret_cast<float*>(begin), floats_, memory_);
}

void GradientMemory::begin(uint32_t index, Step step) {
  Word* const words = reinterpret_cast<Word*>(memory_->data());
  words[index].store(step, std::memory_order_relaxed);
  // Writes to the buffer become visible after the word.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

Result<GradientView> GradientView::map(Descriptor file, size_t floats) {
  auto memory = SharedMemory::map(std::move(file), bytes_for(floats, 1),
                                  bytes_for(floats, kBuffersMax), SharedMemory::Pages::kAtOnce);
  if (!memory) return memory.error();
  const size_t size = memory.value()->size();
  const uint32_t buffers = size >= bytes_for(floats, kBuffersMax) ? kBuffersMax : 1;
  return GradientView(std::move(memory).value(), floats, buffers);
}

Result<ConstBuffer> GradientView::block(uint32_t index, Step step, const Block& block) const {
  DROVER_CHECK(block.offset + block.length <= floats_);
  if (index >= buffers_)
    return invalid_input("a block is offered in buffer " + std::to_string(index) +
                         ", which does not exist");
  const auto* const words = reinterpret_cast<const Word*>(memory_->data());
  // Safe: callers only get const floats, and the mapping is read-only.
  auto* const begin = const_cast<std::byte*>(memory_->data()) + bytes_for(floats_, index);
  return ConstBuffer(std::make_shared<FloatBuffer>(reinterpret_cast<float*>(begin) + block.offset,
                                                   block.length, memory_,
                                                   Stamp{&words[index], step}));
}

Status ParameterMemory::reserve(const BlockPlan& plan, ShardId shard) {
  size_t lines = 0;
  for (const Block& block : plan.blocks) {
    if (block.shard == shard) lines += in_lines(block.length);
  }
  auto memory = SharedMemory::create(std::max<size_t>(lines, 1) * kLineBytes * kVersions,
                                     "parameters", SharedMemory::Pages::kWhenTouched);
  if (!memory) return memory.error();
  memory_ = std::move(memory).value();
  return done();
}

std::unique_ptr<FloatBuffer> ParameterMemory::make(size_t floats) {
  if (!memory_) return nullptr;
  const size_t bytes = in_lines(floats) * kLineBytes;
  if (memory_->size() - used_ < bytes) return nullptr;
  auto* const begin = reinterpret_cast<float*>(memory_->data() + used_);
  used_ += bytes;
  while (large_until_ < used_) {
    memory_->use_large_pages(large_until_, large_until_ + SharedMemory::kLargePage);
    large_until_ += SharedMemory::kLargePage;
  }
  return std::make_unique<FloatBuffer>(begin, floats, memory_);
}

std::optional<uint32_t> ParameterMemory::place_of(const float* floats) const {
  if (!memory_) return std::nullopt;
  const auto* const at = reinterpret_cast<const std::byte*>(floats);
  if (at < memory_->data() || at >= memory_->data() + memory_->size()) return std::nullopt;
  return static_cast<uint32_t>(static_cast<size_t>(at - memory_->data()) / kLineBytes);
}

Result<std::span<const std::byte>> published_at(const SharedMemory& memory, uint32_t place,
                                                size_t bytes) {
  const size_t begin = size_t{place} * ParameterMemory::kLineBytes;
  if (begin > memory.size() || bytes > memory.size() - begin)
    return invalid_input("a place of parameters beyond the shared memory");
  return std::span<const std::byte>(memory.data() + begin, bytes);
}

}  // namespace drover
