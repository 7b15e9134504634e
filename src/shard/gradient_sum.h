// GradientSum: sums up the gradients of one block in one step. Their mean is weighted by samples.
//
// With gradients g_i of s_i samples each, in summation order i = 0, 1, ..., k:
//
//   mean = (g_0 + w_1 g_1 + ... + w_k g_k) / (sum of s_i / s_0),   w_i = s_i / s_0
//
// Weights are relative to the first one. So equal weights are exactly 1 and cause no rounding, and
// the mean of a single gradient is bitwise equal to that gradient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/float_buffer.h"
#include "core/ids.h"
#include "shard/kernels.h"

namespace drover {

enum class SumOrder : uint8_t {
  kArrival,  // each gradient is added on arrival; only the sum is kept
  kWorker,   // by worker id: bitwise reproducible, but keeps one buffer for each worker
};

// A bound on squared norms. A gradient beyond `squares` is scaled to norm `clip_to`; if that is 0,
// the gradient is not added.
struct NormLimit {
  double squares = std::numeric_limits<double>::infinity();
  double clip_to = 0.0;
  bool is_none() const { return squares == std::numeric_limits<double>::infinity(); }
};

class GradientSum {
 public:
  // `pool` must outlive this.
  GradientSum(SumOrder order, size_t length, BufferPool* pool)
      : order_(order), length_(length), pool_(pool) {}

  // Adds a gradient. Returns its squared norm before clipping. In these cases the gradient is not
  // added, and the sum is unchanged:
  //   - it has NaN or infinity, or the sum would have: the result is not finite;
  //   - it is in another process's memory, and that process has overwritten it: no result;
  //   - it is beyond the limit, and limit.clip_to is 0.
  // REQUIRES: `worker` has not contributed since the last reset; samples >= 1; the buffer has
  // `length` floats; nothing writes to the buffer any more, except its owner if it is foreign().
  std::optional<double> add(WorkerId worker, uint32_t samples, ConstBuffer gradient,
                            const NormLimit& limit = {});

  // Forgets everything and releases all buffers.
  void reset();

  size_t length() const { return length_; }
  uint64_t samples() const { return samples_; }
  uint32_t contributors() const { return static_cast<uint32_t>(workers_.size()); }
  // In order of arrival.
  const std::vector<WorkerId>& workers() const { return workers_; }
  bool has(WorkerId worker) const;

  // Writes elements begin, begin + 1, ... of the mean to `out`. The caller can process the mean in
  // chunks, each while it is in the cache.
  // REQUIRES: contributors() >= 1, begin + out.size() <= length().
  void write_mean(size_t begin, std::span<float> out) const;
  // Also adds the squares of the written values to `squares`, in the same pass.
  // REQUIRES: the same; contributors() >= 2; out.size() <= kScaledMax.
  void write_mean(size_t begin, std::span<float> out, SquareSum& squares) const;

 private:
  struct Held {
    WorkerId worker;
    uint32_t samples;
    ConstBuffer gradient;
  };
  // `squares`: the squared norm of the gradient, if it is known.
  std::optional<double> take(WorkerId worker, uint32_t samples, ConstBuffer gradient,
                             std::optional<double> squares = {});
  // These return the same as add(), and change nothing if the gradient is not added.
  std::optional<double> hold(WorkerId worker, uint32_t samples, ConstBuffer gradient,
                             std::optional<double> known);
  double add_own(uint32_t samples, const FloatBuffer& gradient, double squares);
  std::optional<double> add_copy(uint32_t samples, const FloatBuffer& gradient);
  std::optional<double> add_in_place(uint32_t samples, ConstBuffer gradient);
  void rebuild_sum();
  float weight(uint32_t samples) const;
  float mean_factor() const;
  std::span<const float> part(size_t index, size_t begin, size_t size) const;
  void write_sum(size_t begin, std::span<float> out) const;

  SumOrder order_;
  size_t length_;
  BufferPool* pool_;
  uint64_t samples_ = 0;
  std::vector<WorkerId> workers_;
  // In summation order. With kArrival there is one entry: the sum, with the first worker's id.
  std::vector<Held> held_;
  // With kArrival, once the sum is in a buffer of our own: that buffer.
  SharedBuffer sum_;
  // The gradients in sum_, if all of them are still readable in their workers' memory.
  std::vector<Held> sources_;
  double magnitude_bound_ = 0.0;  // no element of the sum has a larger magnitude
};

}  // namespace drover
