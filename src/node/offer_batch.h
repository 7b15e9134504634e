// OfferBatch: collects messages of a training loop, to send them together. Without I/O.
//
// Sending wakes a thread, which costs more than copying a small block. So offers are sent when
// their blocks have kBytes, and the rest with the next request for parameters.
#pragma once

#include <cstddef>
#include <utility>

#include "wire/outbox.h"
#include "worker/worker_machine.h"

namespace drover {

class OfferBatch {
 public:
  static constexpr size_t kBytes = kBlockBytes;

  // For messages that are not urgent: they are sent with the next ones.
  Outbox& messages() { return messages_; }
  // Offers the blocks that this tensor completes. Returns whether it is time to take() and send.
  // `flags`: see WorkerMachine::offer().
  bool offer(WorkerMachine& machine, uint32_t tensor, uint32_t samples, uint16_t flags = 0) {
    const size_t before = messages_.size();
    machine.offer(tensor, samples, messages_, flags);
    for (size_t i = before; i < messages_.size(); ++i)
      offered_ += machine.bytes_of(messages_[i].frame.header.block);
    return offered_ >= kBytes;
  }
  // Returns all messages, oldest first.
  Outbox take() {
    offered_ = 0;
    return std::exchange(messages_, {});
  }

 private:
  Outbox messages_;
  size_t offered_ = 0;  // bytes of the blocks offered in them
};

}  // namespace drover
