// Event texts: the only code that turns events into text for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/event.h"

namespace drover {

// The name of a kind in run files and exports: "lost", "checkpoint-failed".
std::string_view name_of(EventKind kind);
std::optional<EventKind> parse_event_kind(std::string_view name);

// An event as text without its peer: "connection closed; the run continues without it".
std::string event_text(const EventRecord& event);
// An event as one line with its peer: "worker 3 was lost: connection closed; ...".
std::string event_line(const EventRecord& event);
// The name of the event's peer; empty if it has none.
std::string peer_text(const EventRecord& event);

// "killed by signal 9 (Killed)", "exited with status 1".
std::string exit_text(const ProcessExit& exit);
// Why a peer counts as lost: "connection closed", "did not join within 60 s".
std::string loss_text(const Loss& loss);

}  // namespace drover
