#include "system/floors.h"

#include "shard/kernels.h"

namespace drover {
namespace {

DROVER_KERNEL
void touch_none(const float* __restrict sum, const float* __restrict now, float* __restrict next,
                size_t size) {
  for (size_t i = 0; i < size; ++i) next[i] = now[i] + sum[i];
}

DROVER_KERNEL
void touch_one(const float* __restrict sum, const float* __restrict now, float* __restrict next,
               float* __restrict state, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const float s = state[i] + sum[i];
    state[i] = s;
    next[i] = now[i] + s;
  }
}

DROVER_KERNEL
void touch_two(const float* __restrict sum, const float* __restrict now, float* __restrict next,
               float* __restrict state, float* __restrict other, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const float g = sum[i];
    const float s = state[i] + g;
    const float t = other[i] + g;
    state[i] = s;
    other[i] = t;
    next[i] = now[i] + (s + t);
  }
}

}  // namespace

size_t floats_moved(const UpdateStreams& streams) {
  return streams.next.size() * 3 + streams.momentum.size() * 2 + streams.squares.size() * 2;
}

void touch(const UpdateStreams& s) {
  const size_t size = s.next.size();
  const std::span<float> state = s.momentum.empty() ? s.squares : s.momentum;
  if (state.empty()) {
    touch_none(s.sum.data(), s.now.data(), s.next.data(), size);
  } else if (s.momentum.empty() || s.squares.empty()) {
    touch_one(s.sum.data(), s.now.data(), s.next.data(), state.data(), size);
  } else {
    touch_two(s.sum.data(), s.now.data(), s.next.data(), s.momentum.data(), s.squares.data(), size);
  }
}

}  // namespace drover
