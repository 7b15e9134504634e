#include "store/old_formats.h"

#include <fmt/format.h>

#include <utility>

#include "core/event_text.h"

namespace drover {
namespace {

// All other kinds had their current names.
std::optional<EventKind> kind_of_text(std::string_view name) {
  if (name == "kept out") return EventKind::kBackedOff;
  if (name == "start-over") return EventKind::kRestarted;
  return parse_event_kind(name);
}

}  // namespace

Result<EventRecord> event_of_text(Duration at, Step step, std::string_view kind,
                                  std::string_view peer, std::string text) {
  const auto found = kind_of_text(kind);
  if (!found) return invalid_input(fmt::format("'{}' is no kind of event", kind));
  return EventRecord{.at = at,
                     .step = step,
                     .peer = parse_peer(peer),
                     .payload = empty_payload(*found),
                     .recorded_text = std::move(text)};
}

bool says_that_model_is_stale(std::string_view reason) {
  return reason.find("the model has gone stale") != std::string_view::npos;
}

}  // namespace drover
