// Transit: carries the messages of a simulated run from the sender to the receiver.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "sim/extra_delays.h"
#include "sim/simulated_world.h"

namespace drover {

// Approximate size of a control message on the wire.
inline constexpr size_t kControlBytes = 128;
// The time after which a process that was not admitted tries again.
inline constexpr Duration kRetry = std::chrono::milliseconds(50);

inline const Control* control_in(const Outgoing& message) {
  return std::get_if<Control>(&message.frame.payload);
}

class Transit {
 public:
  // `floats`: a copy of a gradient, which the receiver may modify.
  using Receive =
      std::function<void(Party from, Party to, const Outgoing& message, SharedBuffer floats)>;

  // A message that arrives is shown to the witness, then passed to `receive`. REQUIRES: `world`
  // outlives this object.
  Transit(SimulatedWorld& world, Receive receive)
      : world_(world),
        receive_(std::move(receive)),
        delays_(world.settings.scenario, world.settings.seed) {}

  void send_all(Party from, Outbox out);

 private:
  Party receiver_of(Party from, const Outgoing& message) const;
  void send(Party from, Outgoing message);
  SharedBuffer copy_gradient(Party to, FloatSlice& slice, NumberType type);
  void deliver(Party from, uint64_t from_number, Party to, uint64_t to_number,
               const Outgoing& message, SharedBuffer floats);

  SimulatedWorld& world_;
  const Receive receive_;
  ExtraDelays delays_;
  std::vector<uint16_t> halves_;  // a gradient as 16-bit numbers
};

}  // namespace drover
