// GradientBuffers: the memory that a worker's gradients are computed in, and which of it is still
// being sent.
//
// A gradient is only written to a buffer from which nothing is being sent. A worker that waits for
// all parameters has one buffer: frames that are still being sent from it belong to a closed step,
// but are sent whole. With partial pull a worker may be ahead of a shard: the buffer of the
// previous step stays for that shard, and the next gradient goes to another buffer. A worker
// machine offers a shard at most two steps, so there are few buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/float_buffer.h"
#include "core/ids.h"
#include "core/result.h"
#include "node/shared_floats.h"

namespace drover {

class GradientBuffers {
 public:
  // `floats`: the size of each buffer. `partial`: partial pull. An error if shared memory is
  // required (Sharing::kMust) and cannot be made.
  static Result<GradientBuffers> create(Sharing sharing, size_t floats, bool partial);

  // The buffer of the current step, and its index in shared memory.
  const SharedBuffer& current() const { return current_; }
  uint32_t place() const { return place_; }
  // The file of the shared memory; -1: there is none, and gradients are sent.
  int file() const { return memory_ ? memory_->file() : -1; }

  // Makes another buffer current, if that is needed. False: the next gradient has to wait until
  // more frames are sent.
  bool choose_free(bool partial);
  // The current buffer holds the gradient of `step` from here on.
  void begin(Step step);

  // A frame is about to be sent from `buffer`, which may also be that of the initial parameters.
  // choose_free() also waits for those, because the next pull overwrites them.
  void on_sending(const ConstBuffer& buffer) { ++under_way(buffer); }
  // A frame from `buffer` has been sent. Returns whether it was the last one under way from there.
  bool on_sent(const ConstBuffer& buffer) { return --under_way(buffer) == 0; }
  // The connections have ended: no frame is under way any more.
  void forget_frames();

 private:
  struct Buffer {
    SharedBuffer floats;
    int64_t frames = 0;  // under way from it
  };
  GradientBuffers(size_t floats, std::unique_ptr<GradientMemory> memory);
  int64_t& under_way(const ConstBuffer& buffer);

  std::unique_ptr<GradientMemory> memory_;  // where shards read gradients; null: they are sent
  SharedBuffer current_;
  uint32_t place_ = 0;           // index of current_ in memory_
  std::vector<Buffer> buffers_;  // current_ and others
  int64_t others_ = 0;           // frames under way from other memory
};

}  // namespace drover
