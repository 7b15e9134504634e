// The shape of a run file. Every table and column is explained, with units, in docs/run-file.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/run_record.h"

namespace drover {

// PRAGMA application_id of a run file: "DRVR". Lets `file` and us tell it from any other database.
inline constexpr int64_t kApplicationId = 0x44525652;

// PRAGMA user_version. Goes up when an older drover could no longer read the file rightly.
inline constexpr int64_t kSchemaVersion = 5;
// The oldest that can still be read. 3 added what is known of weak synchronization, 4 forecasts and
// shards' loads, 5 events and peers as fields instead of text.
inline constexpr int64_t kOldestSchemaVersion = 2;

// Creates all tables in an empty database, and marks it as a run file.
std::string schema_sql();

// How an outcome is spelled in the file, and everywhere people read it.
std::string_view name_of(RunOutcome outcome);
Result<RunOutcome> parse_outcome(std::string_view name);

// 64-bit numbers that are names, not amounts, are 16 hexadecimal digits: SQLite's integers have a
// sign.
std::string to_hex(uint64_t value);
Result<uint64_t> parse_hex(std::string_view text);

}  // namespace drover
