// RunReader: reads a run file, of a run that has ended, is running, or was killed.
//
// It never blocks or changes the run. Every call sees the rows that are committed at that time, so
// for a running run a later call may return more rows. Ranges of steps are half open.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/run_record.h"
#include "store/database.h"
#include "store/run_header.h"
#include "store/run_statistics.h"

namespace drover {

inline constexpr Step kAllSteps = std::numeric_limits<int64_t>::max();

struct RecordedArrival {
  ArrivalRecord arrival;  // not censored if the gradient arrived, even if late
  bool late = false;      // it arrived after its step had closed
};

class RunReader {
 public:
  // An error, with the reason, if it is not a run file, or if its format is newer or too old.
  static Result<RunReader> open(const std::string& path);

  const std::string& path() const { return path_; }

  // Empty, or one sentence for the user: why not all rows of the file could be read.
  const std::string& warning() const { return warning_; }

  Result<RunHeader> header() const;

  // A run without a recorded end has the outcome kRunning, a reason that says so, and `elapsed` up
  // to the end of its last recorded step. The file does not show whether it was killed or is
  // running.
  Result<RunEnd> end() const;

  // `loads` is empty; see shard_loads().
  Result<std::vector<StepRecord>> steps(Step from = 0, Step to = kAllSteps) const;
  // The total time each shard was busy in these steps; empty for files of older formats.
  Result<std::vector<ShardLoad>> shard_loads(Step from = 0, Step to = kAllSteps) const;
  Result<std::vector<RecordedArrival>> arrivals(Step from = 0, Step to = kAllSteps) const;
  // Visits arrivals one by one, without loading all of a long run into memory.
  Status for_each_arrival(const std::function<void(const RecordedArrival&)>& visit) const;
  // `expected` is empty; see expected().
  Result<std::vector<DecisionRecord>> decisions(Step from = 0, Step to = kAllSteps) const;
  // The forecast of a step's decision; empty if it was not decided by a forecast.
  Result<std::vector<ExpectedArrival>> expected(Step step) const;
  // The last rank of the forecasts: the expected arrival of the last worker. Omits steps without a
  // forecast.
  struct ExpectedLast {
    Step step = 0;
    double mean_s = 0.0;
    bool operator==(const ExpectedLast&) const = default;
  };
  Result<std::vector<ExpectedLast>> expected_last(Step from = 0, Step to = kAllSteps) const;
  Result<std::vector<AbandonRecord>> abandoned() const;
  Result<std::vector<EvaluationRecord>> evaluations() const;
  Result<std::vector<EventRecord>> events() const;
  Result<std::vector<PeerRecord>> peers() const;

  // Computed in SQL, so that a long run need not fit in memory. See run_statistics.h.
  Result<RunTotals> totals() const;
  Result<std::vector<WorkerStatistics>> workers() const;
  // Both are empty for files of older formats without these rows.
  Result<PartialPullStatistics> partial_pulls() const;
  Result<std::vector<OutlierStatistics>> outliers() const;

 private:
  RunReader(std::string path, Database database, std::string warning, int64_t format)
      : path_(std::move(path)),
        database_(std::move(database)),
        warning_(std::move(warning)),
        format_(format) {}

  bool has_partial_pulls() const { return format_ >= 3; }
  bool has_forecasts() const { return format_ >= 4; }
  bool has_fields() const { return format_ >= 5; }  // events and peers are fields, not text

  // Adds the file and what was attempted to an error from the database.
  template <typename T>
  Result<T> with_context(Result<T> result) const;

  std::string path_;
  Database database_;
  std::string warning_;
  int64_t format_;
};

}  // namespace drover
