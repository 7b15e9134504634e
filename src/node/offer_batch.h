// OfferBatch: what a training loop has to say, held back until it is worth a message. Without I/O.
//
// Every message wakes a thread, and costs more than a small block is worth: blocks are offered when
// there are so many bytes of them, and the rest with the next request for parameters.
#pragma once

#include <cstddef>
#include <utility>

#include "wire/outbox.h"
#include "worker/worker_machine.h"

namespace drover {

class OfferBatch {
 public:
  static constexpr size_t kBytes = kBlockBytes;

  // What has no hurry: it goes with the next message.
  Outbox& messages() { return messages_; }
  // Offers what is complete with this tensor. Returns whether there is enough to send.
  bool offer(WorkerMachine& machine, uint32_t tensor, uint32_t samples) {
    const size_t before = messages_.size();
    machine.offer(tensor, samples, messages_);
    for (size_t i = before; i < messages_.size(); ++i)
      offered_ += machine.bytes_of(messages_[i].frame.header.block);
    return offered_ >= kBytes;
  }
  // Everything, in the order in which it came.
  Outbox take() {
    offered_ = 0;
    return std::exchange(messages_, {});
  }

 private:
  Outbox messages_;
  size_t offered_ = 0;  // bytes of the blocks offered in them
};

}  // namespace drover
