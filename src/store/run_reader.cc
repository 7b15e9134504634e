#include "store/run_reader.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "core/event_text.h"
#include "store/event_columns.h"
#include "store/old_formats.h"
#include "store/schema.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

// The marks that distinguish a run file from other databases.
struct Marks {
  int64_t application_id = 0;
  int64_t version = 0;
  uint64_t tables = 0;
};

Result<Marks> marks_of(const Database& database) {
  // Reads sqlite_master first: PRAGMAs alone do not read the write-ahead log.
  auto rows = database.query(
      "SELECT (SELECT count(*) FROM sqlite_master), "
      "(SELECT application_id FROM pragma_application_id), (SELECT user_version FROM "
      "pragma_user_version)",
      [](const Statement& row) {
        return Marks{row.integer(1), row.integer(2), row.count(0)};
      });
  if (!rows) return rows.error();
  return rows.value().front();
}

Error cannot_read(const std::string& path, const std::string& why) {
  return invalid_input(fmt::format("cannot read the run file '{}': {}", path, why));
}

Status check_marks(const std::string& path, const Marks& marks) {
  if (marks.application_id == 0 && marks.tables == 0) {
    return cannot_read(path, "it is empty; the run was killed before it began");
  }
  if (marks.application_id != kApplicationId) {
    return cannot_read(path, "it is a database, but not a run file of drover");
  }
  if (marks.version > kSchemaVersion) {
    return cannot_read(
        path, fmt::format(
                  "it was written by a newer drover (file format {}, this drover reads up to {}); "
                  "update drover",
                  marks.version, kSchemaVersion));
  }
  if (marks.version < kOldestSchemaVersion) {
    return cannot_read(path, fmt::format("it was written by an older drover (file format {}, this "
                                         "drover reads from {} on); read it with that one",
                                         marks.version, kOldestSchemaVersion));
  }
  return done();
}

Status check_file(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return cannot_read(path, "there is no such file; run files are in runs/ by default");
  }
  if (error) return cannot_read(path, error.message());
  if (status.type() == fs::file_type::directory) {
    return cannot_read(path, "it is a folder; name one of the files in it");
  }
  return done();
}

// A writer that was killed while it folded its log into the file leaves a rollback journal. Only a
// connection with write access can roll it back; SQLite does so only if no writer is alive. Returns
// true if there was a journal and it was rolled back.
bool repaired(const std::string& path) {
  std::error_code ignored;
  const std::string journal = path + "-journal";
  if (!fs::exists(journal, ignored)) return false;
  Result<Database> database = Database::open(path, Database::Mode::kReadWrite);
  return database && marks_of(database.value()) && !fs::exists(journal, ignored);
}

std::pair<std::string, std::string> read_pair(const Statement& row) {
  return {row.text(0), row.text(1)};
}

Result<EventRecord> read_event(const Statement& row) {
  const auto kind = parse_event_kind(row.text(2));
  if (!kind) return invalid_input(fmt::format("'{}' is no kind of event", row.text(2)));
  std::optional<Peer> peer;
  if (!row.is_null(3)) {
    const auto role = parse_role(row.text(3));
    if (!role) return invalid_input(fmt::format("'{}' is not a role of a peer", row.text(3)));
    peer = Peer{*role, row.small(4)};
  }
  auto payload = read_payload(*kind, row, 5);
  if (!payload) return payload.error();
  return EventRecord{.at = row.duration(0),
                     .step = row.count(1),
                     .peer = peer,
                     .payload = std::move(payload).value()};
}

constexpr std::string_view kArrivals =
    "SELECT step, worker, run_time_ns, censored, compute_ns, late, samples FROM arrivals "
    "WHERE step >= ?1 AND step < ?2 ORDER BY step, worker";

RecordedArrival read_arrival(const Statement& row) {
  return {.arrival = {.step = row.count(0),
                      .worker = row.small(1),
                      .run_time = row.duration(2),
                      .censored = row.integer(3) != 0,
                      .compute = row.duration(4),
                      .samples = row.small(6)},
          .late = row.integer(5) != 0};
}

}  // namespace

Result<RunReader> RunReader::open(const std::string& path) {
  if (const Status status = check_file(path); !status) return status.error();
  std::string warning;
  Result<Database> database = Database::open(path, Database::Mode::kReadOnly);
  if (!database) return cannot_read(path, database.error().message);
  database.value().wait_for_locks(std::chrono::seconds(2));
  Result<Marks> marks = marks_of(database.value());
  if (!marks && repaired(path)) marks = marks_of(database.value());
  if (!marks && database.value().side_files_refused()) {
    // The folder is read-only, so SQLite cannot create the -shm file that coordinates readers with
    // a writer. No process can write there either, so no coordination is needed.
    database = Database::open(path, Database::Mode::kReadImmutable);
    if (!database) return cannot_read(path, database.error().message);
    marks = marks_of(database.value());
    for (const char* ending : {"-wal", "-journal"}) {
      std::error_code none;
      const auto size = fs::file_size(path + ending, none);
      if (none || size == 0) continue;
      warning = fmt::format(
          "the last part of the run is in '{0}{1}' and cannot be read, because the folder is "
          "read-only; copy '{0}' and '{0}{1}' to a folder you can write in, and read them there",
          path, ending);
    }
  }
  if (!marks) return cannot_read(path, marks.error().message);
  if (const Status status = check_marks(path, marks.value()); !status) return status.error();
  return RunReader(path, std::move(database).value(), std::move(warning), marks.value().version);
}

template <typename T>
Result<T> RunReader::with_context(Result<T> result) const {
  if (!result) return cannot_read(path_, result.error().message);
  return result;
}

Result<RunHeader> RunReader::header() const {
  auto rows = with_context(
      database_.query("SELECT run_id, started, command, job FROM run", [](const Statement& row) {
        RunHeader header;
        const Result<uint64_t> run_id = parse_hex(row.text(0));
        header.run_id = run_id ? run_id.value() : 0;
        header.started = row.text(1);
        header.command = row.text(2);
        header.job = row.text(3);
        return header;
      }));
  if (!rows) return rows.error();
  if (rows.value().empty()) return cannot_read(path_, "its table 'run' is empty");
  auto settings =
      with_context(database_.query("SELECT key, value FROM settings ORDER BY key", read_pair));
  if (!settings) return settings.error();
  auto environment =
      with_context(database_.query("SELECT key, value FROM environment ORDER BY key", read_pair));
  if (!environment) return environment.error();
  RunHeader header = std::move(rows.value().front());
  header.settings = std::move(settings).value();
  header.environment = std::move(environment).value();
  return header;
}

Result<RunEnd> RunReader::end() const {
  struct Row {
    std::string outcome, reason, digest, cause;
    Duration elapsed;
  };
  auto rows = with_context(database_.query(
      fmt::format("SELECT outcome, reason, coalesce(elapsed_ns, (SELECT max(at_ns + elapsed_ns) - "
                  "min(at_ns) FROM steps), 0), parameters_digest, {} FROM run",
                  has_fields() ? "cause" : "'unknown'"),
      [](const Statement& row) {
        return Row{row.text(0), row.text(1), row.text(3), row.text(4), row.duration(2)};
      }));
  if (!rows) return rows.error();
  if (rows.value().empty()) return cannot_read(path_, "its table 'run' is empty");
  const Row& row = rows.value().front();
  Result<RunOutcome> outcome = with_context(parse_outcome(row.outcome));
  if (!outcome) return outcome.error();
  Result<EndCause> cause = with_context(parse_end_cause(row.cause));
  if (!cause) return cause.error();
  auto memory = with_context(database_.query(
      "SELECT peer, bytes FROM memory ORDER BY peer",
      [](const Statement& one) { return std::pair(parse_peer(one.text(0)), one.count(1)); }));
  if (!memory) return memory.error();
  std::vector<std::pair<Peer, uint64_t>> memory_bytes;
  for (const auto& [peer, bytes] : memory.value()) {
    if (!peer) return cannot_read(path_, "its table 'memory' has a name that is not a peer's");
    memory_bytes.emplace_back(*peer, bytes);
  }
  const Result<uint64_t> digest = parse_hex(row.digest);
  RunEnd end{.outcome = outcome.value(),
             .cause = cause.value(),
             .reason = row.reason,
             .elapsed = row.elapsed,
             .parameters_digest = digest ? digest.value() : 0,
             .memory_bytes = std::move(memory_bytes)};
  if (end.outcome == RunOutcome::kRunning) {
    end.reason = "no end is recorded: the run was killed or is still running";
  }
  return end;
}

Result<std::vector<StepRecord>> RunReader::steps(Step from, Step to) const {
  const std::string sql = fmt::format(
      "SELECT step, at_ns, elapsed_ns, contributors, late, refused, samples, loss, accuracy, "
      "learning_rate, "
      "last_worker, aggregate_ns, closing_ns, undecided_ns, signal, noise, noise_scale, {} FROM "
      "steps WHERE step >= ?1 AND step < ?2 ORDER BY step",
      has_partial_pulls() ? "fresh_mean, fresh_min, staleness_mean, staleness_max"
                          : "NULL, NULL, NULL, 0");
  auto steps = with_context(database_.query(
      sql,
      [](const Statement& row) {
        return StepRecord{.step = row.count(0),
                          .at = row.duration(1),
                          .elapsed = row.duration(2),
                          .contributors = row.small(3),
                          .late = row.small(4),
                          .refused = row.small(5),
                          .samples = row.count(6),
                          .loss = row.real(7),
                          .accuracy = row.real(8),
                          .learning_rate = row.real(9),
                          .last_worker = row.small(10),
                          .aggregate = row.duration(11),
                          .closing = row.duration(12),
                          .undecided = row.duration(13),
                          .signal = row.real(14),
                          .noise = row.real(15),
                          .noise_scale = row.real(16),
                          .fresh_mean = row.real(17),
                          .fresh_min = row.real(18),
                          .staleness_mean = row.real(19),
                          .staleness_max = row.count(20),
                          .block_counts = {},
                          .loads = {}};
      },
      from, to));
  if (!steps || !has_partial_pulls()) return steps;
  auto step = steps.value().begin();
  const Status counted = with_context(database_.for_each(
      "SELECT step, contributors, blocks FROM block_contributors WHERE step >= ?1 AND step < ?2 "
      "ORDER BY step, contributors",
      [&](const Statement& row) {
        while (step != steps.value().end() && step->step < row.count(0)) ++step;
        if (step != steps.value().end() && step->step == row.count(0))
          step->block_counts.push_back({row.small(1), row.small(2)});
      },
      from, to));
  if (!counted) return counted.error();
  return steps;
}

Result<std::vector<ShardLoad>> RunReader::shard_loads(Step from, Step to) const {
  if (!has_forecasts()) return std::vector<ShardLoad>{};
  return with_context(database_.query(
      "SELECT shard, sum(busy_ns) FROM shard_loads WHERE step >= ?1 AND step < ?2 GROUP BY shard "
      "ORDER BY shard",
      [](const Statement& row) {
        return ShardLoad{.shard = row.small(0), .busy = row.duration(1)};
      },
      from, to));
}

Result<std::vector<ExpectedArrival>> RunReader::expected(Step step) const {
  if (!has_forecasts()) return std::vector<ExpectedArrival>{};
  return with_context(database_.query(
      "SELECT rank, mean_s, low_s, high_s FROM forecasts WHERE step = ?1 ORDER BY rank",
      [](const Statement& row) {
        return ExpectedArrival{.rank = row.small(0),
                               .mean = static_cast<float>(row.real(1)),
                               .low = static_cast<float>(row.real(2)),
                               .high = static_cast<float>(row.real(3))};
      },
      step));
}

Result<std::vector<RunReader::ExpectedLast>> RunReader::expected_last(Step from, Step to) const {
  if (!has_forecasts()) return std::vector<ExpectedLast>{};
  // SQLite takes mean_s from the row that has the maximum.
  return with_context(database_.query(
      "SELECT step, mean_s, max(rank) FROM forecasts WHERE step >= ?1 AND step < ?2 GROUP BY step "
      "ORDER BY step",
      [](const Statement& row) {
        return ExpectedLast{.step = row.count(0), .mean_s = row.real(1)};
      },
      from, to));
}

Result<std::vector<RecordedArrival>> RunReader::arrivals(Step from, Step to) const {
  return with_context(database_.query(kArrivals, read_arrival, from, to));
}

Status RunReader::for_each_arrival(const std::function<void(const RecordedArrival&)>& visit) const {
  return with_context(database_.for_each(
      kArrivals, [&](const Statement& row) { visit(read_arrival(row)); }, Step{0}, kAllSteps));
}

Result<std::vector<DecisionRecord>> RunReader::decisions(Step from, Step to) const {
  const bool fields = has_fields();
  return with_context(database_.query(
      fmt::format("SELECT step, cutoff, alive, reason, time_limit_ns, at_ns, {} FROM decisions "
                  "WHERE step >= ?1 AND step < ?2 ORDER BY rowid",
                  fields ? "model_stale" : "0"),
      [fields](const Statement& row) {
        DecisionRecord decision{.step = row.count(0),
                                .cutoff = row.small(1),
                                .alive = row.small(2),
                                .reason = row.text(3),
                                .time_limit = row.duration(4),
                                .at = row.duration(5)};
        decision.model_stale =
            fields ? row.integer(6) != 0 : says_that_model_is_stale(decision.reason);
        return decision;
      },
      from, to));
}

Result<std::vector<AbandonRecord>> RunReader::abandoned() const {
  return with_context(database_.query(
      "SELECT step, worker, wasted_ns, restart_ns, resumed FROM abandoned ORDER BY rowid",
      [](const Statement& row) {
        return AbandonRecord{row.count(0), row.small(1), row.duration(2), row.duration(3),
                             row.count(4)};
      }));
}

Result<std::vector<EvaluationRecord>> RunReader::evaluations() const {
  return with_context(database_.query(
      "SELECT version, at_ns, loss, accuracy, samples FROM evaluations ORDER BY rowid",
      [](const Statement& row) {
        return EvaluationRecord{row.count(0), row.duration(1), row.real(2), row.real(3),
                                row.count(4)};
      }));
}

Result<std::vector<EventRecord>> RunReader::events() const {
  std::vector<EventRecord> events;
  std::optional<Error> trouble;
  const auto take = [&](Result<EventRecord> event) {
    if (event) events.push_back(std::move(event).value());
    if (!event && !trouble) trouble = event.error();
  };
  const Status status =
      has_fields()
          ? database_.for_each(fmt::format("SELECT at_ns, step, kind, role, number, {} FROM events "
                                           "ORDER BY rowid",
                                           event_column_names()),
                               [&](const Statement& row) { take(read_event(row)); })
          : database_.for_each("SELECT at_ns, step, kind, peer, text FROM events ORDER BY rowid",
                               [&](const Statement& row) {
                                 take(event_of_text(row.duration(0), row.count(1), row.text(2),
                                                    row.text(3), row.text(4)));
                               });
  if (!status) return cannot_read(path_, status.error().message);
  if (trouble) return cannot_read(path_, trouble->message);
  return events;
}

Result<std::vector<PeerRecord>> RunReader::peers() const {
  auto rows = with_context(
      database_.query("SELECT name, host, pid FROM peers ORDER BY rowid", [](const Statement& row) {
        return std::pair(row.text(0), PeerRecord{{}, row.text(1), row.integer(2)});
      }));
  if (!rows) return rows.error();
  std::vector<PeerRecord> peers;
  for (auto& [name, record] : rows.value()) {
    const auto peer = parse_peer(name);
    if (!peer) return cannot_read(path_, fmt::format("'{}' is not the name of a peer", name));
    record.peer = *peer;
    peers.push_back(std::move(record));
  }
  return peers;
}

Result<RunTotals> RunReader::totals() const { return with_context(totals_of(database_)); }
Result<std::vector<WorkerStatistics>> RunReader::workers() const {
  return with_context(workers_of(database_));
}
Result<std::vector<OutlierStatistics>> RunReader::outliers() const {
  return with_context(outliers_of(database_));
}

Result<PartialPullStatistics> RunReader::partial_pulls() const {
  if (!has_partial_pulls()) return PartialPullStatistics{};
  return with_context(partial_pulls_of(database_));
}

}  // namespace drover
