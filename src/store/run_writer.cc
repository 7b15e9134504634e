#include "store/run_writer.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "core/check.h"
#include "store/schema.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

// Only a reader that checks a file left by a crash holds the writer up, and not for long.
constexpr Duration kLockPatience = std::chrono::seconds(1);

// What a writer says, over and over. The enumerators are places in kSql.
enum Sentence : size_t {
  kBegin,
  kCommit,
  kPeer,
  kDecision,
  kStep,
  kArrival,
  kLateArrival,
  kEvaluation,
  kEvent,
  kMemory,
  kEnd,
};
constexpr std::string_view kSql[] = {
    "BEGIN",
    "COMMIT",
    "INSERT OR REPLACE INTO peers VALUES (?1, ?2, ?3)",
    "INSERT INTO decisions VALUES (?1, ?2, ?3, ?4)",
    "INSERT INTO steps VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    // A late arrival that overtook its step knows more than the step does.
    R"(INSERT INTO arrivals (step, worker, run_time_ns, censored, compute_ns)
       VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING)",
    R"(INSERT INTO arrivals (step, worker, run_time_ns, censored, compute_ns, late)
       VALUES (?1, ?2, ?3, 0, ?4, 1)
       ON CONFLICT DO UPDATE SET run_time_ns = excluded.run_time_ns, censored = 0,
                                 compute_ns = excluded.compute_ns, late = 1)",
    "INSERT INTO evaluations VALUES (?1, ?2, ?3, ?4, ?5)",
    "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)",
    "INSERT OR REPLACE INTO memory VALUES (?1, ?2)",
    "UPDATE run SET outcome = ?1, reason = ?2, elapsed_ns = ?3, parameters_digest = ?4",
};
static_assert(std::size(kSql) == kEnd + 1);

Error cannot_create(const std::string& path, const std::string& why, const std::string& advice) {
  return system_error(fmt::format("cannot create the run file '{}': {}; {}", path, why, advice));
}

// Whether `path` can become a run file without destroying anything. SQLite's own lock, taken later,
// decides between two runs that start at once; this is for a clear message.
Status check_free(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return done();
  if (error) {
    return cannot_create(path, error.message(), "give another place with --run-file");
  }
  if (status.type() == fs::file_type::directory) {
    return invalid_input(fmt::format(
        "cannot create the run file '{0}': it is a folder; name a file in it, such as '{0}/run.db'",
        path));
  }
  if (status.type() != fs::file_type::regular) {
    return invalid_input(fmt::format(
        "cannot create the run file '{}': it is not a regular file; give another name", path));
  }
  if (fs::file_size(path, error) == 0 && !error) return done();

  Result<Database> database = Database::open(path, Database::Mode::kReadOnly);
  if (database) {
    const auto id = database.value().query("PRAGMA application_id",
                                           [](const Statement& row) { return row.integer(0); });
    if (id && !id.value().empty() && id.value().front() == kApplicationId) {
      return invalid_input(fmt::format(
          "cannot create the run file '{0}': a run is recorded there already, and runs are never "
          "overwritten; give another name, or move or delete it (look at it with: drover runs "
          "'{0}')",
          path));
    }
  }
  return invalid_input(
      fmt::format("cannot create the run file '{}': the file exists and is not a drover run, so it "
                  "is left as it is; "
                  "give another name",
                  path));
}

Status make_folders(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) return done();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return cannot_create(
        path, fmt::format("the folder '{}' cannot be made ({})", folder.string(), error.message()),
        "give another place with --run-file, or make the folder writable");
  }
  return done();
}

Status insert_pairs(Database& database, std::string_view sql,
                    const std::vector<std::pair<std::string, std::string>>& pairs) {
  Result<Statement> insert = database.prepare(sql);
  if (!insert) return insert.error();
  for (const auto& [key, value] : pairs) {
    if (Status status = insert.value().run(key, value); !status) return status;
  }
  return done();
}

// All in one transaction, so that a file is a whole run file or still an empty one.
Status write_header(Database& database, const RunHeader& header) {
  if (Status status = database.execute("BEGIN EXCLUSIVE"); !status) return status;
  const auto tables = database.query("SELECT count(*) FROM sqlite_master",
                                     [](const Statement& row) { return row.count(0); });
  if (!tables) return tables.error();
  if (tables.value().front() != 0) return system_error("another run has just taken it");
  if (Status status = database.execute(schema_sql()); !status) return status;
  {
    Result<Statement> run = database.prepare(
        "INSERT INTO run (only_row, run_id, started, command, job) VALUES (1, ?1, ?2, ?3, ?4)");
    if (!run) return run.error();
    Status status =
        run.value().run(to_hex(header.run_id), header.started, header.command, header.job);
    if (!status) return status;
  }
  Status status =
      insert_pairs(database, "INSERT OR REPLACE INTO settings VALUES (?1, ?2)", header.settings);
  if (!status) return status;
  status = insert_pairs(database, "INSERT OR REPLACE INTO environment VALUES (?1, ?2)",
                        header.environment);
  if (!status) return status;
  return database.execute("COMMIT");
}

Result<Database> create_database(const std::string& path, const RunHeader& header,
                                 const RunWriterOptions& options) {
  Result<Database> opened = Database::open(path, Database::Mode::kCreate);
  if (!opened) return opened.error();
  Database database = std::move(opened).value();
  database.wait_for_locks(kLockPatience);
  if (const Status status = write_header(database, header); !status) return status.error();
  // NORMAL loses at most the last commits in a power cut, and spares a disk sync per commit.
  Status status = database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  if (!status) return status.error();
  if (options.pages_max > 0) {
    status = database.execute(fmt::format("PRAGMA max_page_count = {}", options.pages_max));
    if (!status) return status.error();
  }
  return database;
}

}  // namespace

Result<std::unique_ptr<RunWriter>> RunWriter::create(const std::string& path,
                                                     const RunHeader& header,
                                                     const RunWriterOptions& options) {
  DROVER_CHECK(options.rows_per_commit > 0);
  if (path.empty()) return invalid_input("cannot create a run file without a name");
  if (const Status status = check_free(path); !status) return status.error();
  if (const Status status = make_folders(path); !status) return status.error();
  Result<Database> database = create_database(path, header, options);
  if (!database) {
    return cannot_create(
        path, database.error().message,
        "check that the folder is writable and the disk has space, or give another "
        "place with --run-file");
  }
  std::vector<Statement> statements;
  for (const std::string_view sql : kSql) {
    Result<Statement> statement = database.value().prepare(sql);
    if (!statement) {
      return cannot_create(path, statement.error().message, "this is a bug in drover");
    }
    statements.push_back(std::move(statement).value());
  }
  return std::unique_ptr<RunWriter>(new RunWriter(path, std::move(database).value(),
                                                  std::move(statements), options.rows_per_commit));
}

RunWriter::RunWriter(std::string path, Database database, std::vector<Statement> statements,
                     uint64_t rows_per_commit)
    : path_(std::move(path)),
      database_(std::move(database)),
      statements_(std::move(statements)),
      rows_per_commit_(rows_per_commit) {}

RunWriter::~RunWriter() {
  // Nobody is left to be told of a failure here; what cannot be committed is rolled back.
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
  // SQLite may have rolled back by itself already; whatever is left of the transaction goes.
  if (database_.in_transaction()) static_cast<void>(database_.execute("ROLLBACK"));
  rows_pending_ = 0;
  last_step_ = last_step_kept_;
  const std::string kept = last_step_kept_
                               ? fmt::format("everything up to step {} is kept", *last_step_kept_)
                               : std::string("no step was kept");
  failure_ =
      system_error(fmt::format("cannot write to the run file '{}': {}; {}, and what is there stays "
                               "readable; free some space or check the disk, "
                               "then start again with another --run-file",
                               path_, reason.message, kept));
  return *failure_;
}

Status RunWriter::on_peer(const PeerRecord& peer) {
  const Status status = add(kPeer, peer.name, peer.host, peer.pid);
  return status ? commit_if_due() : status;
}

Status RunWriter::on_decision(const DecisionRecord& decision) {
  const Status status =
      add(kDecision, decision.step, decision.cutoff, decision.alive, decision.reason);
  return status ? commit_if_due() : status;
}

Status RunWriter::on_step(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) {
  Status status = add(kStep, step.step, step.at, step.elapsed, step.contributors, step.late,
                      step.refused, step.samples, step.loss, step.accuracy, step.learning_rate,
                      step.last_worker, step.aggregate);
  if (!status) return status;
  for (const ArrivalRecord& arrival : arrivals) {
    status = add(kArrival, arrival.step, arrival.worker, arrival.run_time, arrival.censored,
                 arrival.compute);
    if (!status) return status;
  }
  last_step_ = step.step;
  return commit_if_due();  // only now: a step is in the file with all its arrivals
}

Status RunWriter::on_late_arrival(const ArrivalRecord& arrival) {
  const Status status =
      add(kLateArrival, arrival.step, arrival.worker, arrival.run_time, arrival.compute);
  return status ? commit_if_due() : status;
}

Status RunWriter::on_evaluation(const EvaluationRecord& evaluation) {
  const Status status = add(kEvaluation, evaluation.version, evaluation.at, evaluation.loss,
                            evaluation.accuracy, evaluation.samples);
  return status ? commit_if_due() : status;
}

Status RunWriter::on_event(const EventRecord& event) {
  const Status status = add(kEvent, event.at, event.step, event.kind, event.peer, event.text);
  return status ? commit_if_due() : status;
}

Status RunWriter::on_end(const RunEnd& end) {
  failure_.reset();
  for (const auto& [peer, bytes] : end.memory_bytes) {
    if (Status status = add(kMemory, peer, bytes); !status) return status;
  }
  const std::string digest = end.parameters_digest == 0 ? "" : to_hex(end.parameters_digest);
  Status status = add(kEnd, name_of(end.outcome), end.reason, end.elapsed, digest);
  if (status) status = flush();
  if (!status) return status;
  // Fold the log into the file, so that one file is the run. A reader in the way only means that
  // the log stays until the last of us closes: nothing is lost, so a refusal is no failure of the
  // run.
  database_.wait_for_locks(Duration::zero());
  static_cast<void>(database_.execute("PRAGMA journal_mode = DELETE"));
  database_.wait_for_locks(kLockPatience);
  return done();
}

}  // namespace drover
