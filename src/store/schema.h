// The schema of a run file. docs/run-file.md documents every table and column, with units.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/run_record.h"

namespace drover {

// PRAGMA application_id of a run file: "DRVR". It distinguishes run files from other databases.
inline constexpr int64_t kApplicationId = 0x44525652;

// PRAGMA user_version. Incremented when older versions of drover cannot read the file correctly.
inline constexpr int64_t kSchemaVersion = 5;
// The oldest format that can be read. Format 3 added partial pulls, 4 forecasts and shards' loads,
// 5 events and peers as fields instead of text.
inline constexpr int64_t kOldestSchemaVersion = 2;

// SQL that creates all tables in an empty database and marks it as a run file.
std::string schema_sql();

// The name of an outcome in the run file and for people.
std::string_view name_of(RunOutcome outcome);
Result<RunOutcome> parse_outcome(std::string_view name);

// 64-bit identifiers are stored as 16 hexadecimal digits, since SQLite's integers are signed.
std::string to_hex(uint64_t value);
Result<uint64_t> parse_hex(std::string_view text);

}  // namespace drover
