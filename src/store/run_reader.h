// RunReader: what a run file says, of a run that has ended, is still going, or was killed.
//
// Reads only, and never disturbs the writer. Every call sees what was committed at that moment, so
// of a running run a later call may know more than an earlier one. Ranges of steps are half open.
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
  ArrivalRecord arrival;  // the latest knowledge: a straggler that came after all is not censored
  bool late = false;      // it came after its step had closed
};

class RunReader {
 public:
  // Refuses, with the reason, what is not a run file, or one written by a newer drover, or by one
  // too old.
  static Result<RunReader> open(const std::string& path);

  const std::string& path() const { return path_; }

  // Empty, or one sentence for the user: why the file may hold more than could be read.
  const std::string& warning() const { return warning_; }

  Result<RunHeader> header() const;

  // A run that did not end has the outcome kRunning, a reason that says so, and `elapsed` up to the
  // end of its last recorded step. Whether it was killed or is still going, its file cannot know.
  Result<RunEnd> end() const;

  // Without the shards' loads; see shard_loads().
  Result<std::vector<StepRecord>> steps(Step from = 0, Step to = kAllSteps) const;
  // How long each shard was busy in these steps, summed up; empty in files from before.
  Result<std::vector<ShardLoad>> shard_loads(Step from = 0, Step to = kAllSteps) const;
  Result<std::vector<RecordedArrival>> arrivals(Step from = 0, Step to = kAllSteps) const;
  // The same, one by one, for whoever cannot hold those of a long run in memory at once.
  Status for_each_arrival(const std::function<void(const RecordedArrival&)>& visit) const;
  // Without what was expected; see expected().
  Result<std::vector<DecisionRecord>> decisions(Step from = 0, Step to = kAllSteps) const;
  // What the decision about a step expected of it; empty if it was not decided by a forecast.
  Result<std::vector<ExpectedArrival>> expected(Step step) const;
  // Of that only the last rank: when everybody would be there. Steps without a forecast are left
  // out.
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

  // Computed by the database, so that a long run need not fit in memory. See run_statistics.h.
  Result<RunTotals> totals() const;
  Result<std::vector<WorkerStatistics>> workers() const;
  Result<PartialPullStatistics> partial_pulls()
      const;  // nothing, of a file from before there was any
  Result<std::vector<OutlierStatistics>> outliers() const;  // the same

 private:
  RunReader(std::string path, Database database, std::string warning, int64_t format)
      : path_(std::move(path)),
        database_(std::move(database)),
        warning_(std::move(warning)),
        format_(format) {}

  bool knows_partial_pulls() const { return format_ >= 3; }
  bool knows_forecasts() const { return format_ >= 4; }
  bool knows_fields() const { return format_ >= 5; }  // of events and peers

  // Puts file and purpose around a reason from the database.
  template <typename T>
  Result<T> told(Result<T> result) const;

  std::string path_;
  Database database_;
  std::string warning_;
  int64_t format_;
};

}  // namespace drover
