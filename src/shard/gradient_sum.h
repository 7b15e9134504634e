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
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/float_buffer.h"
#include "core/ids.h"
#include "shard/kernels.h"

namespace drover {

enum class SumOrder : uint8_t {
  kArrival,  // each gradient is added when it comes; the sum is all that is held
  kWorker,   // by worker id, whoever comes first: the same bits every time, for one buffer a worker
};

// Gradients beyond `squares` are out of line: they are made as long as `clip_to`, or, if that is
// 0, not taken.
struct LengthLimit {
  double squares = std::numeric_limits<double>::infinity();
  double clip_to = 0.0;
  bool is_none() const { return squares == std::numeric_limits<double>::infinity(); }
};

class GradientSum {
 public:
  // `pool` must outlive this.
  GradientSum(SumOrder order, size_t length, BufferPool* pool)
      : order_(order), length_(length), pool_(pool) {}

  // Takes a gradient in, within the limit. Returns the sum of its squares, as it came. The gradient
  // is not taken, and the sum is what it was, if it has NaN or infinity (or the sum would: NaN is
  // returned), if it lies in memory of another process that has overwritten it meanwhile (nothing
  // is returned), or if it is beyond a limit to which it is not shortened.
  // REQUIRES: `worker` has not contributed since the last reset; samples >= 1; the buffer has
  // `length` floats; only somebody foreign() may still write to it.
  std::optional<double> add(WorkerId worker, uint32_t samples, ConstBuffer gradient,
                            const LengthLimit& limit = {});

  // Forgets everything and lets all buffers go.
  void reset();

  size_t length() const { return length_; }
  uint64_t samples() const { return samples_; }
  uint32_t contributors() const { return static_cast<uint32_t>(workers_.size()); }
  // In order of arrival.
  const std::vector<WorkerId>& workers() const { return workers_; }
  bool has(WorkerId worker) const;

  // Writes elements begin, begin + 1, ... of the mean to `out`: made for closing a block chunk by
  // chunk, each used by the caller while still in the cache.
  // REQUIRES: contributors() >= 1, begin + out.size() <= length().
  void write_mean(size_t begin, std::span<float> out) const;
  // Also adds the squares of what it writes to `squares`, in the same pass.
  // REQUIRES: the same; contributors() >= 2; out.size() <= kScaledMax.
  void write_mean(size_t begin, std::span<float> out, SquareSum& squares) const;

 private:
  struct Held {
    WorkerId worker;
    uint32_t samples;
    ConstBuffer gradient;
  };
  // `squares` of the gradient, where they are known.
  std::optional<double> take(WorkerId worker, uint32_t samples, ConstBuffer gradient,
                             std::optional<double> squares = {});
  // Each returns what add() does, and leaves everything as it was if the gradient is not taken.
  std::optional<double> hold(WorkerId worker, uint32_t samples, ConstBuffer gradient,
                             std::optional<double> known);
  double add_own(uint32_t samples, const FloatBuffer& gradient, double squares);
  std::optional<double> add_copy(uint32_t samples, const FloatBuffer& gradient);
  std::optional<double> add_in_place(uint32_t samples, ConstBuffer gradient);
  void make_again();
  float weight(uint32_t samples) const;
  float mean_factor() const;
  std::span<const float> part(size_t index, size_t begin, size_t size) const;
  void write_sum(size_t begin, std::span<float> out) const;

  SumOrder order_;
  size_t length_;
  BufferPool* pool_;
  uint64_t samples_ = 0;
  std::vector<WorkerId> workers_;
  // In the order of summing. With kArrival there is one, the sum of all, under the name of the
  // first.
  std::vector<Held> held_;
  // With kArrival, once it is ours to write to: the sum. As long as all that came lies in memory of
  // their workers, also what it is made of.
  SharedBuffer sum_;
  std::vector<Held> sources_;
  double reach_ = 0.0;  // no element of the sum is larger
};

}  // namespace drover
