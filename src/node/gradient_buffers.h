// GradientBuffers: the memory that a worker's gradients are computed in, and what is still being
// sent from it.
//
// A gradient is written where nothing is being sent from. A worker that waits for all parameters
// has one buffer: what is still sent from it belongs to a closed step, but leaves whole. A worker
// that does not wait for all of them may be ahead of a shard: the gradient of the step before is
// left to that shard, and the next one goes to another buffer. A worker machine offers a shard no
// more than two steps, so that there are few.
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
  // Of so many floats each. `partial`: the worker does not wait for all parameters. An error if
  // they must lie in shared memory and cannot.
  static Result<GradientBuffers> create(Sharing sharing, size_t floats, bool partial);

  // The buffer of the step that is computed, and its place in shared memory.
  const SharedBuffer& current() const { return current_; }
  uint32_t place() const { return place_; }
  // Of the shared memory; -1: there is none, and gradients are sent.
  int file() const { return memory_ ? memory_->file() : -1; }

  // Makes another buffer current, if that is needed. False: the next gradient has to wait until
  // more frames are sent.
  bool choose_free(bool partial);
  // What is in the current buffer belongs to `step` from here on.
  void begin(Step step);

  // A frame is sent from `buffer`, which may also be that of the initial parameters; it has been.
  // The next gradient begins only when the initial parameters have left too: they are overwritten.
  void on_sending(const ConstBuffer& buffer) { ++under_way(buffer); }
  // ENSURES: returns whether that was the last frame from this buffer.
  bool on_sent(const ConstBuffer& buffer) { return --under_way(buffer) == 0; }
  // The connections are gone, and all that was being sent with them.
  void forget_frames();

 private:
  struct Buffer {
    SharedBuffer floats;
    int64_t frames = 0;  // that are being sent from it
  };
  GradientBuffers(size_t floats, std::unique_ptr<GradientMemory> memory);
  int64_t& under_way(const ConstBuffer& buffer);

  std::unique_ptr<GradientMemory> memory_;  // where shards read gradients; null: they are sent
  SharedBuffer current_;
  uint32_t place_ = 0;           // of it in memory_
  std::vector<Buffer> buffers_;  // that one and others
  int64_t others_ = 0;           // frames that are being sent from other memory
};

}  // namespace drover
