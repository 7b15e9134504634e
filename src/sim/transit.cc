#include "sim/transit.h"

#include <algorithm>

namespace drover {

void Transit::send_all(Party from, Outbox out) {
  for (Outgoing& message : out) send(from, std::move(message));
}

// A message to a shard goes to the process that serves it. A message from that process to the shard
// goes to its standby.
Party Transit::receiver_of(Party from, const Outgoing& message) const {
  Party to{message.to.role, message.to.index};
  if (!is_server(to) || from == kCoordinatorParty) return to;
  to = world_.server_of(to.index);
  if (to == from) to.role = to.role == Role::kShard ? Role::kStandby : Role::kShard;
  return to;
}

void Transit::send(Party from, Outgoing message) {
  const Party to = receiver_of(from, message);
  FrameHeader& header = message.frame.header;
  size_t bytes = kControlBytes;
  SharedBuffer floats;
  if (auto* slice = std::get_if<FloatSlice>(&message.frame.payload)) {
    header.length = static_cast<uint32_t>(slice->length * bytes_of(header.number_type));
    bytes = kHeaderBytes + header.length;
    if (from.role == Role::kWorker) floats = copy_gradient(to, *slice, header.number_type);
  }
  const Duration extra = delays_.of(from, to, header);
  // Messages from a shard to the coordinator were already shown when the shard produced them.
  const bool shown =
      world_.witness != nullptr && world_.is_watched(from, world_.processes.number(from)) &&
      header.type != FrameType::kReplica && !(is_server(from) && to.role == Role::kCoordinator);
  if (shown) world_.witness->on_sent(world_.seen_as(from), message, world_.time.now());
  // The shard modifies the gradient that it receives, so nothing else may hold it.
  if (floats) message.frame.payload = std::monostate();
  const TimePoint arrival =
      world_.network.arrival(world_.time.now(), from, to, message.to.lane, bytes, extra);
  world_.time.plan(arrival, [this, from, from_number = world_.processes.number(from), to,
                             to_number = world_.processes.reached_from(from, to),
                             message = std::move(message), floats = std::move(floats)]() mutable {
    deliver(from, from_number, to, to_number, message, std::move(floats));
  });
}

// Copies the gradient into a buffer of the shard, since the worker's buffer changes while the
// message is under way.
SharedBuffer Transit::copy_gradient(Party to, FloatSlice& slice, NumberType type) {
  SharedBuffer floats = world_.servers.at(to).process->pool().take(slice.length);
  const auto values = slice.span();
  if (type == NumberType::kFloat32) {
    std::copy(values.begin(), values.end(), floats->data());
  } else {
    halves_.resize(values.size());
    narrow(type, values, halves_);
    widen(type, halves_, floats->span());
  }
  slice.buffer = floats;
  slice.offset = 0;
  return floats;
}

void Transit::deliver(Party from, uint64_t from_number, Party to, uint64_t to_number,
                      const Outgoing& message, SharedBuffer floats) {
  if (!world_.processes.delivers(from, from_number, to, to_number)) return;
  if (const SimulatedServer* const server = world_.find_server(to); server && server->hangs()) {
    // After the hang the messages are delivered in their original order.
    return world_.time.plan(
        server->stalled_until() + Duration(1),
        [this, from, from_number, to, to_number, message, floats = std::move(floats)]() mutable {
          deliver(from, from_number, to, to_number, message, std::move(floats));
        });
  }
  const bool to_server = is_server(to) || to.role == Role::kCoordinator;
  const bool shown = world_.witness != nullptr && world_.is_watched(from, from_number) &&
                     world_.is_watched(to, to_number);
  if (to_server && shown && !is_server(from) &&
      (!is_server(to) || world_.server_of(to.index) == to))
    world_.witness->on_received(world_.seen_as(from), message, world_.time.now());
  receive_(from, to, message, std::move(floats));
}

}  // namespace drover
