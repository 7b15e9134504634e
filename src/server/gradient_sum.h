// GradientSum: the gradients of one block in one step, and their mean weighted by samples.
//
// With gradients g_i from s_i samples each, in the order of summing i = 0, 1, ..., k:
//
//   mean = (g_0 + w_1 g_1 + ... + w_k g_k) / (sum of s_i / s_0),   w_i = s_i / s_0
//
// Weights are relative to the first, so that equal weights are exactly 1 and cost no rounding, and
// the mean of one gradient is that gradient to the bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/float_buffer.h"
#include "core/ids.h"
#include "server/kernels.h"

namespace drover {

enum class SumOrder : uint8_t {
  kArrival,  // each gradient is added when it comes; two buffers are held at most
  kWorker,   // by worker id, whoever comes first: the same bits every time, for one buffer a worker
};

class GradientSum {
 public:
  GradientSum(SumOrder order, size_t length) : order_(order), length_(length) {}

  // Takes a gradient in, and the buffer over: it may be written to, and is let go when no longer
  // needed, at the latest by reset().
  // REQUIRES: `worker` has not contributed since the last reset; samples >= 1; the buffer has
  // `length` floats, all finite, and no other owner.
  void add(WorkerId worker, uint32_t samples, SharedBuffer gradient);

  // Forgets everything and lets all buffers go.
  void reset();

  size_t length() const { return length_; }
  uint64_t samples() const { return samples_; }
  uint32_t contributors() const { return static_cast<uint32_t>(workers_.size()); }
  // In order of arrival.
  const std::vector<WorkerId>& workers() const { return workers_; }
  bool has(WorkerId worker) const;

  // Writes elements begin, begin + 1, ... of the mean to `out`. Made for closing a block chunk by
  // chunk: the last gradient is added here, and used by the caller while still in the cache.
  // REQUIRES: contributors() >= 1, begin + out.size() <= length().
  void write_mean(size_t begin, std::span<float> out) const;
  // Also adds the squares of what it writes to `squares`, in the same pass.
  // REQUIRES: the same; contributors() >= 2; out.size() <= kScaledMax.
  void write_mean(size_t begin, std::span<float> out, SquareSum& squares) const;

 private:
  struct Held {
    WorkerId worker;
    uint32_t samples;
    SharedBuffer gradient;
  };
  float weight(const Held& held) const;
  // The sum, relative to the first's samples: times mean_factor() it is the mean.
  void write_sum(size_t begin, std::span<float> out) const;
  float mean_factor() const;

  SumOrder order_;
  size_t length_;
  uint64_t samples_ = 0;
  std::vector<WorkerId> workers_;
  // In the order of summing. With kArrival the first is the sum of all that came, except the
  // latest, which is the second: write_mean() reads it anyway, so adding it there is free.
  std::vector<Held> held_;
};

}  // namespace drover
