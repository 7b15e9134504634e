#include "core/float_buffer.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "core/mutex.h"

namespace drover {
namespace {

constexpr size_t kAlignmentBytes = 64;

}  // namespace

void FloatBuffer::Free::operator()(float* pointer) const {
  if (!keeper) ::operator delete[](pointer, std::align_val_t{kAlignmentBytes});
}

FloatBuffer::FloatBuffer(size_t size)
    : size_(size),
      data_(static_cast<float*>(
          ::operator new[](size * sizeof(float), std::align_val_t{kAlignmentBytes}))) {
  std::memset(data_.get(), 0, size * sizeof(float));
}

FloatBuffer::FloatBuffer(float* data, size_t size, std::shared_ptr<const void> keeper,
                         std::optional<Stamp> stamp)
    : size_(size), stamp_(stamp), data_(data, Free{std::move(keeper)}) {}

bool FloatBuffer::intact() const {
  if (!stamp_) return true;
  // All earlier reads of the content happen before the read of the word.
  std::atomic_thread_fence(std::memory_order_acquire);
  return stamp_->word->load(std::memory_order_relaxed) == stamp_->value;
}

struct BufferPool::Shelf {
  Mutex mutex;
  std::map<size_t, std::vector<std::unique_ptr<FloatBuffer>>> free  // by size
      DROVER_GUARDED_BY(mutex);
};

BufferPool::BufferPool(Make make) : shelf_(std::make_shared<Shelf>()), make_(std::move(make)) {}

SharedBuffer BufferPool::take(size_t size) {
  std::unique_ptr<FloatBuffer> buffer;
  {
    const MutexLock lock(shelf_->mutex);
    auto& free = shelf_->free[size];
    if (!free.empty()) {
      buffer = std::move(free.back());
      free.pop_back();
    }
  }
  if (!buffer && make_) buffer = make_(size);
  if (!buffer) buffer = std::make_unique<FloatBuffer>(size);
  return SharedBuffer(buffer.release(), [shelf = shelf_](FloatBuffer* returned) {
    std::unique_ptr<FloatBuffer> owned(returned);
    const MutexLock lock(shelf->mutex);
    shelf->free[owned->size()].push_back(std::move(owned));
  });
}

}  // namespace drover
