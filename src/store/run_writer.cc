#include "store/run_writer.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/event_text.h"
#include "store/create_run_file.h"
#include "store/event_columns.h"
#include "store/schema.h"

namespace drover {
namespace {

// A reader of a file after a crash blocks the writer for a short time.
constexpr Duration kLockPatience = std::chrono::seconds(1);

// Statements that are run repeatedly. The enumerators are indexes into kSql.
enum Sentence : size_t {
  kBegin,
  kCommit,
  kPeer,
  kDecision,
  kForecast,
  kStep,
  kBlockCount,
  kShardLoad,
  kOutlier,
  kArrival,
  kLateArrival,
  kAbandoned,
  kEvaluation,
  kEvent,
  kMemory,
  kForgetDecisions,
  kForgetForecasts,
  kForgetSteps,
  kForgetBlockCounts,
  kForgetShardLoads,
  kForgetOutliers,
  kForgetArrivals,
  kForgetAbandoned,
  kForgetEvaluations,
  kEnd,
};
constexpr std::string_view kSql[] = {
    "BEGIN",
    "COMMIT",
    "INSERT OR REPLACE INTO peers VALUES (?1, ?2, ?3, ?4)",
    "INSERT INTO decisions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    "INSERT OR REPLACE INTO forecasts VALUES (?1, ?2, ?3, ?4, ?5)",
    "INSERT INTO steps VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "
    "?16, ?17, ?18, ?19, ?20, ?21)",
    "INSERT INTO block_contributors VALUES (?1, ?2, ?3)",
    "INSERT INTO shard_loads VALUES (?1, ?2, ?3)",
    "INSERT INTO outliers VALUES (?1, ?2, ?3, ?4, ?5)",
    // A late arrival that was recorded before its step has the run-time, and the step only a bound.
    R"(INSERT INTO arrivals (step, worker, run_time_ns, censored, compute_ns, samples)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING)",
    R"(INSERT INTO arrivals (step, worker, run_time_ns, censored, compute_ns, samples, late)
       VALUES (?1, ?2, ?3, 0, ?4, ?5, 1)
       ON CONFLICT DO UPDATE SET run_time_ns = excluded.run_time_ns, censored = 0,
                                 compute_ns = max(compute_ns, excluded.compute_ns),
                                 samples = max(samples, excluded.samples), late = 1)",
    "INSERT INTO abandoned VALUES (?1, ?2, ?3, ?4, ?5)",
    // A restarted evaluator may evaluate the same version again.
    R"(INSERT INTO evaluations SELECT ?1, ?2, ?3, ?4, ?5
       WHERE ?1 IS NOT (SELECT version FROM evaluations ORDER BY rowid DESC LIMIT 1))",
    "",  // see insert_event()
    "INSERT OR REPLACE INTO memory VALUES (?1, ?2, ?3)",
    "DELETE FROM decisions WHERE step >= ?1",
    "DELETE FROM forecasts WHERE step >= ?1",
    "DELETE FROM steps WHERE step >= ?1",
    "DELETE FROM block_contributors WHERE step >= ?1",
    "DELETE FROM shard_loads WHERE step >= ?1",
    "DELETE FROM outliers WHERE step >= ?1",
    "DELETE FROM arrivals WHERE step >= ?1",
    "DELETE FROM abandoned WHERE step >= ?1",
    "DELETE FROM evaluations WHERE version > ?1",
    "UPDATE run SET outcome = ?1, cause = ?2, reason = ?3, elapsed_ns = ?4, parameters_digest = ?5",
};
static_assert(std::size(kSql) == kEnd + 1);

std::string insert_event() {
  std::string places = "?";
  // Besides the payload: at_ns, step, kind, role, number, text.
  for (size_t i = 1; i < kEventColumns.size() + 6; ++i) places += ", ?";
  return fmt::format("INSERT INTO events (at_ns, step, kind, role, number, {}, text) VALUES ({})",
                     event_column_names(), places);
}

}  // namespace

Result<std::unique_ptr<RunWriter>> RunWriter::create(const std::string& path,
                                                     const RunHeader& header,
                                                     const RunWriterOptions& options) {
  Result<Database> created = create_run_file(path, header);
  if (!created) return created.error();
  return write_to(path, std::move(created).value(), options);
}

Result<std::unique_ptr<RunWriter>> RunWriter::reopen(const std::string& path,
                                                     const RunWriterOptions& options) {
  Result<Database> opened = Database::open(path, Database::Mode::kReadWrite);
  if (!opened) return opened.error();
  return write_to(path, std::move(opened).value(), options);
}

Result<std::unique_ptr<RunWriter>> RunWriter::write_to(const std::string& path, Database database,
                                                       const RunWriterOptions& options) {
  DROVER_CHECK(options.rows_per_commit > 0);
  database.wait_for_locks(kLockPatience);
  // NORMAL may lose the last commits in a power failure, and saves a disk sync per commit.
  std::string pragmas = "PRAGMA synchronous = NORMAL;";
  if (options.pages_max > 0)
    pragmas += fmt::format("PRAGMA max_page_count = {}", options.pages_max);
  if (const Status status = database.execute(pragmas); !status) return status.error();
  std::vector<Statement> statements;
  for (size_t each = 0; each < std::size(kSql); ++each) {
    Result<Statement> statement =
        each == kEvent ? database.prepare(insert_event()) : database.prepare(kSql[each]);
    if (!statement) {
      return system_error(
          fmt::format("cannot write to the run file '{}': {}", path, statement.error().message));
    }
    statements.push_back(std::move(statement).value());
  }
  return std::unique_ptr<RunWriter>(
      new RunWriter(path, std::move(database), std::move(statements), options.rows_per_commit));
}

RunWriter::RunWriter(std::string path, Database database, std::vector<Statement> statements,
                     uint64_t rows_per_commit)
    : path_(std::move(path)),
      database_(std::move(database)),
      statements_(std::move(statements)),
      rows_per_commit_(rows_per_commit) {}

RunWriter::~RunWriter() {
  // A destructor cannot return an error; rows that cannot be committed are rolled back.
  static_cast<void>(flush());
}

template <typename... Values>
Status RunWriter::add(size_t statement, const Values&... values) {
  if (failure_) return *failure_;
  if (!database_.in_transaction()) {
    if (const Status status = statements_[kBegin].run(); !status) return fail(status.error());
  }
  if (const Status status = statements_[statement].run(values...); !status)
    return fail(status.error());
  ++rows_pending_;
  return done();
}

Status RunWriter::commit_if_due() { return rows_pending_ < rows_per_commit_ ? done() : flush(); }

Status RunWriter::flush() {
  if (failure_) return *failure_;
  if (!database_.in_transaction()) return done();
  if (const Status status = statements_[kCommit].run(); !status) return fail(status.error());
  rows_pending_ = 0;
  last_step_kept_ = last_step_;
  return done();
}

Error RunWriter::fail(const Error& reason) {
  // SQLite may already have rolled back the transaction; this rolls back the rest.
  if (database_.in_transaction()) static_cast<void>(database_.execute("ROLLBACK"));
  rows_pending_ = 0;
  last_step_ = last_step_kept_;
  const std::string kept = last_step_kept_
                               ? fmt::format("all records up to step {} are kept", *last_step_kept_)
                               : std::string("no step was kept");
  failure_ =
      system_error(fmt::format("cannot write to the run file '{}': {}; {}, and what is there stays "
                               "readable; free some space or check the disk, "
                               "then start again with another --run-file",
                               path_, reason.message, kept));
  return *failure_;
}

Status RunWriter::on_peer(const PeerRecord& peer) {
  const Status status = add(kPeer, name_of(peer.peer.role), peer.peer.index, peer.host, peer.pid);
  return status ? commit_if_due() : status;
}

Status RunWriter::on_decision(const DecisionRecord& decision) {
  Status status = add(kDecision, decision.step, decision.cutoff, decision.alive, decision.reason,
                      decision.time_limit, decision.at, decision.model_stale);
  for (const ExpectedArrival& each : decision.expected) {
    if (!status) break;
    status = add(kForecast, decision.step, each.rank, static_cast<double>(each.mean),
                 static_cast<double>(each.low), static_cast<double>(each.high));
  }
  return status ? commit_if_due() : status;
}

Status RunWriter::on_step(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) {
  Status status =
      add(kStep, step.step, step.at, step.elapsed, step.contributors, step.late, step.refused,
          step.samples, step.loss, step.accuracy, step.learning_rate, step.last_worker,
          step.aggregate, step.closing, step.undecided, step.signal, step.noise, step.noise_scale,
          step.fresh_mean, step.fresh_min, step.staleness_mean, step.staleness_max);
  if (!status) return status;
  for (const BlockCount& count : step.block_counts) {
    status = add(kBlockCount, step.step, count.contributors, count.blocks);
    if (!status) return status;
  }
  for (const ShardLoad& load : step.loads) {
    status = add(kShardLoad, step.step, load.shard, load.busy);
    if (!status) return status;
  }
  for (const OutlierRecord& each : step.outliers) {
    status = add(kOutlier, step.step, each.worker, each.blocks, each.ratio, each.used);
    if (!status) return status;
  }
  for (const ArrivalRecord& arrival : arrivals) {
    status = add(kArrival, arrival.step, arrival.worker, arrival.run_time, arrival.censored,
                 arrival.compute, arrival.samples);
    if (!status) return status;
  }
  last_step_ = step.step;
  return commit_if_due();  // only now: a step is in the file with all its arrivals
}

Status RunWriter::on_late_arrival(const ArrivalRecord& arrival) {
  const Status status = add(kLateArrival, arrival.step, arrival.worker, arrival.run_time,
                            arrival.compute, arrival.samples);
  return status ? commit_if_due() : status;
}

Status RunWriter::on_abandoned(const AbandonRecord& abandoned) {
  const Status status = add(kAbandoned, abandoned.step, abandoned.worker, abandoned.wasted,
                            abandoned.restart, abandoned.resumed);
  return status ? commit_if_due() : status;
}

Status RunWriter::on_evaluation(const EvaluationRecord& evaluation) {
  const Status status = add(kEvaluation, evaluation.version, evaluation.at, evaluation.loss,
                            evaluation.accuracy, evaluation.samples);
  return status ? commit_if_due() : status;
}

Status RunWriter::on_event(const EventRecord& event) {
  std::optional<std::string_view> role;
  std::optional<uint32_t> number;
  if (event.peer) {
    role = name_of(event.peer->role);
    number = event.peer->index;
  }
  const EventCells cells = cells_of(event.payload);
  const std::string text = event_text(event);
  const Status status = std::apply(
      [&](const auto&... each) {
        return add(kEvent, event.at, event.step, name_of(event.kind()), role, number, each...,
                   text);
      },
      cells);
  return status ? commit_if_due() : status;
}

Status RunWriter::restart_at(Step first) {
  for (const size_t each :
       {kForgetDecisions, kForgetForecasts, kForgetSteps, kForgetBlockCounts, kForgetShardLoads,
        kForgetOutliers, kForgetArrivals, kForgetAbandoned}) {
    if (const Status status = add(each, first); !status) return status;
  }
  // The version of an evaluation is the number of completed steps.
  if (const Status status = add(kForgetEvaluations, first); !status) return status;
  last_step_ = first == 0 ? std::nullopt : std::optional(first - 1);
  return flush();
}

Status RunWriter::on_end(const RunEnd& end) {
  failure_.reset();
  for (const auto& [peer, bytes] : end.memory_bytes) {
    if (Status status = add(kMemory, name_of(peer.role), peer.index, bytes); !status) return status;
  }
  const std::string digest = end.parameters_digest == 0 ? "" : to_hex(end.parameters_digest);
  Status status =
      add(kEnd, name_of(end.outcome), name_of(end.cause), end.reason, end.elapsed, digest);
  if (status) status = flush();
  if (!status) return status;
  // Folds the log into the file, so that the run is a single file. With a reader this fails, and
  // the log stays until the last connection closes. No row is lost, so the failure is ignored.
  database_.wait_for_locks(Duration::zero());
  static_cast<void>(database_.execute("PRAGMA journal_mode = DELETE"));
  database_.wait_for_locks(kLockPatience);
  return done();
}

void fold_log(const std::string& run_file) {
  std::error_code ignored;
  if (!std::filesystem::exists(run_file + "-wal", ignored)) return;
  auto database = Database::open(run_file, Database::Mode::kReadWrite);
  if (database) static_cast<void>(database.value().execute("PRAGMA journal_mode = DELETE"));
}

}  // namespace drover
