// Event columns: an event's payload as columns of a row, and back.
//
// Each kind of event uses some of the columns; the others are NULL. docs/run-file.md documents
// them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/event.h"
#include "core/result.h"
#include "store/database.h"

namespace drover {

struct EventColumn {
  std::string_view name;
  std::string_view type;
};

// In the order of the table's columns.
inline constexpr std::array kEventColumns = {
    EventColumn{"cause", "TEXT"},        EventColumn{"effect", "TEXT"},
    EventColumn{"restart_from", "TEXT"}, EventColumn{"outcome", "TEXT"},
    EventColumn{"detail", "TEXT"},       EventColumn{"tensor", "TEXT"},
    EventColumn{"target", "TEXT"},       EventColumn{"version", "INTEGER"},
    EventColumn{"bytes", "INTEGER"},     EventColumn{"duration_ns", "INTEGER"},
    EventColumn{"times", "INTEGER"},     EventColumn{"by_host", "INTEGER"},
    EventColumn{"by_signal", "INTEGER"}, EventColumn{"exit_number", "INTEGER"},
    EventColumn{"restarted", "INTEGER"}, EventColumn{"from_memory", "INTEGER"},
    EventColumn{"os_error", "INTEGER"},  EventColumn{"ratio", "REAL"},
    EventColumn{"used", "INTEGER"},      EventColumn{"share", "REAL"},
    EventColumn{"shards", "INTEGER"},    EventColumn{"shards_left_out", "INTEGER"},
    EventColumn{"step_s", "REAL"},       EventColumn{"all_blocks_s", "REAL"},
    EventColumn{"pulls", "INTEGER"},
};

// "cause TEXT, effect TEXT, ...", for CREATE TABLE, and "cause, effect, ...".
std::string event_column_definitions();
std::string event_column_names();

using EventCells = std::array<ColumnValue, kEventColumns.size()>;
EventCells cells_of(const EventPayload& payload);
// REQUIRES: there is a column of this name.
const ColumnValue& cell_of(const EventCells& cells, std::string_view column);
// The payload from the columns of a row, beginning with column `first`. An Error if a column has an
// unknown word.
Result<EventPayload> read_payload(EventKind kind, const Statement& row, int first);

// The name of a cause in the run file.
std::string_view name_of(EndCause cause);
Result<EndCause> parse_end_cause(std::string_view name);

}  // namespace drover
