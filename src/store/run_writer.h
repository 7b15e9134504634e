// RunWriter: records a run in one SQLite file as it goes.
//
// Rows gather in a transaction that is committed every few thousand rows, by flush(), and at the
// end. The owner calls flush() a few times a second, so that readers see the run nearly live and a
// kill -9 loses no more than that. The file is consistent at every moment: a step is in it with all
// of its arrivals, or not at all. A run whose writer vanished without on_end stays marked as
// running.
//
// The finished file is a single file: the write-ahead log beside it (-wal, -shm) is folded in at
// the end, unless somebody is reading just then.
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
  uint64_t pages_max = 0;  // of 4 KiB; beyond it the disk counts as full; 0: no limit
};

class RunWriter : public RunObserver {
 public:
  // Makes the file, and the folders above it. Whatever lies at `path` already is left alone and
  // named in the Error: nothing is ever overwritten.
  static Result<std::unique_ptr<RunWriter>> create(const std::string& path, const RunHeader& header,
                                                   const RunWriterOptions& options = {});

  // Goes on with a file whose writer has vanished.
  static Result<std::unique_ptr<RunWriter>> reopen(const std::string& path,
                                                   const RunWriterOptions& options = {});

  // Commits what is pending, as far as the disk allows; does not mark the run as ended.
  ~RunWriter() override;

  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;

  // The first failure is final: the rows of the open transaction are gone, so every later call is
  // answered with the same Error instead of leaving a hole. Only on_end tries once more, so that,
  // if it can, the file itself says how the run ended. What was committed before stays readable.
  Status on_peer(const PeerRecord& peer) override;  // the same name again replaces the peer
  Status on_decision(const DecisionRecord& decision) override;
  Status on_step(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) override;
  Status on_late_arrival(const ArrivalRecord& arrival) override;
  Status on_abandoned(const AbandonRecord& abandoned) override;
  Status on_evaluation(const EvaluationRecord& evaluation) override;
  Status on_event(const EventRecord& event) override;
  // What is recorded after the end is kept too; a second end replaces the first.
  Status on_end(const RunEnd& end) override;

  // The run goes on from step `first`: what was recorded of it and of later ones has not happened.
  // Events stay.
  Status restart_at(Step first);

  // Commits what was recorded so far: from now on readers see it, and no crash of ours loses it.
  Status flush();

  const std::string& path() const { return path_; }

 private:
  static Result<std::unique_ptr<RunWriter>> write_to(const std::string& path, Database database,
                                                     const RunWriterOptions& options);
  RunWriter(std::string path, Database database, std::vector<Statement> statements,
            uint64_t rows_per_commit);

  // Runs a statement, by its place in the list in run_writer.cc, in the open transaction; opens one
  // if need be.
  template <typename... Values>
  Status add(size_t statement, const Values&... values);
  Status commit_if_due();
  Error fail(const Error& reason);

  const std::string path_;
  Database database_;                  // before the statements: it must outlive them
  std::vector<Statement> statements_;  // prepared once
  const uint64_t rows_per_commit_;
  uint64_t rows_pending_ = 0;
  std::optional<Step> last_step_;       // recorded
  std::optional<Step> last_step_kept_;  // committed
  std::optional<Error> failure_;
};

// Makes one file of a finished run and the log beside it (-wal), which is left if somebody read
// just when the run ended. If somebody reads now, it stays as it is: nothing is lost.
void fold_log(const std::string& run_file);

}  // namespace drover
