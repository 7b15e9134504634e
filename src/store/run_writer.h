// RunWriter: records a run in one SQLite file while it runs.
//
// Rows are collected in a transaction, which is committed every few thousand rows, by flush(), and
// at the end. The owner calls flush() a few times a second, so that readers see recent rows and a
// kill -9 loses only rows since the last flush. The file is always consistent: it has a step with
// all of its arrivals, or not at all. A run whose writer ended without on_end() stays marked as
// running.
//
// A finished run is a single file: the write-ahead log beside it (-wal, -shm) is folded into it at
// the end, unless another process is reading the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/run_record.h"
#include "store/database.h"
#include "store/run_header.h"

namespace drover {

struct RunWriterOptions {
  uint64_t rows_per_commit = 2000;
  uint64_t pages_max = 0;  // limit on the file's size in pages of 4 KiB; 0: no limit
};

class RunWriter : public RunObserver {
 public:
  // Creates the file and its parent folders. An existing file at `path` is not changed, and named
  // in the Error.
  static Result<std::unique_ptr<RunWriter>> create(const std::string& path, const RunHeader& header,
                                                   const RunWriterOptions& options = {});

  // Continues a file whose writer ended without on_end().
  static Result<std::unique_ptr<RunWriter>> reopen(const std::string& path,
                                                   const RunWriterOptions& options = {});

  // Commits pending rows, as far as possible; does not mark the run as ended.
  ~RunWriter() override;

  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;

  // The first failure is final: the rows of the open transaction are lost, so every later call
  // returns the same Error and the file gets no gap. Only on_end() tries once more, so that the
  // file has the run's end if possible. Rows committed before stay readable.
  Status on_peer(const PeerRecord& peer) override;  // replaces a peer of the same name
  Status on_decision(const DecisionRecord& decision) override;
  Status on_step(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) override;
  Status on_late_arrival(const ArrivalRecord& arrival) override;
  Status on_abandoned(const AbandonRecord& abandoned) override;
  Status on_evaluation(const EvaluationRecord& evaluation) override;
  Status on_event(const EventRecord& event) override;
  // Records after the end are kept too. A second end replaces the first.
  Status on_end(const RunEnd& end) override;

  // The run restarts at step `first`: removes the records of this step and later ones, except
  // events.
  Status restart_at(Step first);

  // Commits all records so far. ENSURES: readers see them, and a crash of this process keeps them.
  Status flush();

  const std::string& path() const { return path_; }

 private:
  static Result<std::unique_ptr<RunWriter>> write_to(const std::string& path, Database database,
                                                     const RunWriterOptions& options);
  RunWriter(std::string path, Database database, std::vector<Statement> statements,
            uint64_t rows_per_commit);

  // Runs a statement, by its index in the list in run_writer.cc, in the open transaction; begins
  // one if necessary.
  template <typename... Values>
  Status add(size_t statement, const Values&... values);
  Status commit_if_due();
  Error fail(const Error& reason);

  const std::string path_;
  Database database_;                  // declared before the statements, to outlive them
  std::vector<Statement> statements_;  // prepared once
  const uint64_t rows_per_commit_;
  uint64_t rows_pending_ = 0;
  std::optional<Step> last_step_;       // the last recorded step
  std::optional<Step> last_step_kept_;  // the last committed step
  std::optional<Error> failure_;
};

// Folds the log beside a finished run's file (-wal) into the file. The log stays if a process was
// reading when the run ended. If a process is reading now, nothing changes.
void fold_log(const std::string& run_file);

}  // namespace drover
