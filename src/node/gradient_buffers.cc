#include "node/gradient_buffers.h"

#include <utility>

namespace drover {

Result<GradientBuffers> GradientBuffers::create(Sharing sharing, size_t floats, bool partial) {
  if (sharing == Sharing::kNo) return GradientBuffers(floats, nullptr);
  auto memory = GradientMemory::create(floats, partial ? 2 : 1);
  if (memory) return GradientBuffers(floats, std::move(memory).value());
  if (sharing == Sharing::kMust)
    return system_error(memory.error().message + "; try --transport uds");
  return GradientBuffers(floats, nullptr);
}

GradientBuffers::GradientBuffers(size_t floats, std::unique_ptr<GradientMemory> memory)
    : memory_(std::move(memory)),
      current_(memory_ ? memory_->buffer(0) : std::make_shared<FloatBuffer>(floats)),
      buffers_{{current_}} {}

bool GradientBuffers::choose_free(bool partial) {
  if (others_ > 0) return false;
  if (!partial) return buffers_.front().frames == 0;
  if (memory_) {
    // A shard that still reads the other buffer notices that it is overwritten; see GradientMemory.
    place_ = 1 - place_;
    current_ = memory_->buffer(place_);
    return true;
  }
  for (const Buffer& each : buffers_) {
    if (each.frames > 0 || each.floats == current_) continue;
    current_ = each.floats;
    return true;
  }
  current_ = std::make_shared<FloatBuffer>(current_->size());
  buffers_.push_back({current_});
  return true;
}

void GradientBuffers::begin(Step step) {
  if (memory_) memory_->begin(place_, step);
}

void GradientBuffers::forget_frames() {
  for (Buffer& each : buffers_) each.frames = 0;
  others_ = 0;
}

int64_t& GradientBuffers::under_way(const ConstBuffer& buffer) {
  for (Buffer& each : buffers_) {
    if (each.floats == buffer) return each.frames;
  }
  return others_;
}

}  // namespace drover
