#include "core/event.h"

namespace drover {
namespace {

template <size_t... kinds>
EventPayload empty_payload_at(size_t wanted, std::index_sequence<kinds...>) {
  EventPayload payload;
  ((kinds == wanted ? void(payload.emplace<kinds>()) : void()), ...);
  return payload;
}

}  // namespace

EventPayload empty_payload(EventKind kind) {
  return empty_payload_at(static_cast<size_t>(kind),
                          std::make_index_sequence<std::variant_size_v<EventPayload>>());
}

}  // namespace drover
