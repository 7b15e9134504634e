#include "store/schema.h"

#include <fmt/format.h>

#include <charconv>

#include "store/event_columns.h"

namespace drover {
namespace {

constexpr std::string_view kTables = R"sql(
CREATE TABLE run (
  only_row          INTEGER PRIMARY KEY CHECK (only_row = 1),
  run_id            TEXT NOT NULL,
  started           TEXT NOT NULL,
  command           TEXT NOT NULL,
  job               TEXT NOT NULL,
  outcome           TEXT NOT NULL DEFAULT 'running',
  cause             TEXT NOT NULL DEFAULT 'unknown',
  reason            TEXT NOT NULL DEFAULT '',
  elapsed_ns        INTEGER,
  parameters_digest TEXT
);
CREATE TABLE settings    (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE environment (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE peers (
  role   TEXT NOT NULL,
  number INTEGER NOT NULL,
  host   TEXT NOT NULL,
  pid    INTEGER NOT NULL,
  name   TEXT GENERATED ALWAYS AS ({peer}),
  PRIMARY KEY (role, number)
);
CREATE TABLE memory (
  role   TEXT NOT NULL,
  number INTEGER NOT NULL,
  bytes  INTEGER NOT NULL,
  peer   TEXT GENERATED ALWAYS AS ({peer}),
  PRIMARY KEY (role, number)
) WITHOUT ROWID;
CREATE TABLE decisions (
  step   INTEGER NOT NULL,
  cutoff INTEGER NOT NULL,
  alive  INTEGER NOT NULL,
  reason TEXT NOT NULL,
  time_limit_ns INTEGER NOT NULL DEFAULT 0,
  at_ns INTEGER NOT NULL DEFAULT 0,
  model_stale INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE forecasts (
  step   INTEGER NOT NULL,
  rank   INTEGER NOT NULL,
  mean_s REAL NOT NULL,
  low_s  REAL NOT NULL,
  high_s REAL NOT NULL,
  PRIMARY KEY (step, rank)
) WITHOUT ROWID;
CREATE TABLE steps (
  step          INTEGER PRIMARY KEY,
  at_ns         INTEGER NOT NULL,
  elapsed_ns    INTEGER NOT NULL,
  contributors  INTEGER NOT NULL,
  late          INTEGER NOT NULL,
  refused       INTEGER NOT NULL,
  samples       INTEGER NOT NULL,
  loss          REAL,
  accuracy      REAL,
  learning_rate REAL,
  last_worker   INTEGER NOT NULL,
  aggregate_ns  INTEGER NOT NULL,
  closing_ns    INTEGER NOT NULL,
  undecided_ns  INTEGER NOT NULL,
  signal        REAL,
  noise         REAL,
  noise_scale   REAL,
  fresh_mean     REAL,
  fresh_min      REAL,
  staleness_mean REAL,
  staleness_max  INTEGER NOT NULL
);
CREATE TABLE block_contributors (
  step         INTEGER NOT NULL,
  contributors INTEGER NOT NULL,
  blocks       INTEGER NOT NULL,
  PRIMARY KEY (step, contributors)
) WITHOUT ROWID;
CREATE TABLE shard_loads (
  step    INTEGER NOT NULL,
  shard   INTEGER NOT NULL,
  busy_ns INTEGER NOT NULL,
  PRIMARY KEY (step, shard)
) WITHOUT ROWID;
CREATE TABLE outliers (
  step   INTEGER NOT NULL,
  worker INTEGER NOT NULL,
  blocks INTEGER NOT NULL,
  ratio  REAL NOT NULL,
  used   INTEGER NOT NULL,
  PRIMARY KEY (step, worker)
) WITHOUT ROWID;
CREATE TABLE arrivals (
  step        INTEGER NOT NULL,
  worker      INTEGER NOT NULL,
  run_time_ns INTEGER NOT NULL,
  censored    INTEGER NOT NULL,
  compute_ns  INTEGER NOT NULL,
  late        INTEGER NOT NULL DEFAULT 0,
  samples     INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (step, worker)
) WITHOUT ROWID;
CREATE TABLE abandoned (
  step       INTEGER NOT NULL,
  worker     INTEGER NOT NULL,
  wasted_ns  INTEGER NOT NULL,
  restart_ns INTEGER NOT NULL,
  resumed    INTEGER NOT NULL
);
CREATE TABLE evaluations (
  version  INTEGER NOT NULL,
  at_ns    INTEGER NOT NULL,
  loss     REAL,
  accuracy REAL,
  samples  INTEGER NOT NULL
);
CREATE TABLE events (
  at_ns  INTEGER NOT NULL,
  step   INTEGER NOT NULL,
  kind   TEXT NOT NULL,
  role   TEXT,
  number INTEGER,
  {event_columns},
  text   TEXT NOT NULL,
  peer   TEXT GENERATED ALWAYS AS ({peer})
);
)sql";

// The name of a peer as an SQL expression; see name_of(Peer).
constexpr std::string_view kPeerName =
    "CASE WHEN role IN ('shard', 'worker', 'standby') THEN role || ' ' || number "
    "ELSE coalesce(role, '') END";

constexpr RunOutcome kOutcomes[] = {RunOutcome::kRunning, RunOutcome::kCompleted,
                                    RunOutcome::kInterrupted, RunOutcome::kFailed};

}  // namespace

std::string schema_sql() {
  const std::string tables = fmt::format(kTables, fmt::arg("peer", kPeerName),
                                         fmt::arg("event_columns", event_column_definitions()));
  return fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; {}", kApplicationId,
                     kSchemaVersion, tables);
}

std::string_view name_of(RunOutcome outcome) {
  switch (outcome) {
    case RunOutcome::kRunning:
      return "running";
    case RunOutcome::kCompleted:
      return "completed";
    case RunOutcome::kInterrupted:
      return "interrupted";
    case RunOutcome::kFailed:
      return "failed";
  }
  return "unknown";
}

Result<RunOutcome> parse_outcome(std::string_view name) {
  for (const RunOutcome outcome : kOutcomes) {
    if (name == name_of(outcome)) return outcome;
  }
  return invalid_input(fmt::format("'{}' is not an outcome of a run", name));
}

std::string to_hex(uint64_t value) { return fmt::format("{:016x}", value); }

Result<uint64_t> parse_hex(std::string_view text) {
  uint64_t value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, value, 16);
  if (error != std::errc() || stopped != end) {
    return invalid_input(fmt::format("'{}' is not a hexadecimal number", text));
  }
  return value;
}

}  // namespace drover
