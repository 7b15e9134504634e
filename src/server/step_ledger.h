// StepLedger: puts together what shards and workers say about each step, until the whole story is
// told.
//
// Shards tell who arrived when, workers tell how their gradient was; the two come over different
// connections in any order. A step is finished when all shards have closed it, and told when the
// reports of its contributors are in or kReportPatience later steps have finished without them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/run_record.h"
#include "core/time.h"
#include "wire/control.h"

namespace drover {

struct StepStory {
  StepRecord step;
  std::vector<ArrivalRecord>
      arrivals;  // one for every worker alive when the step opened, by worker
  std::vector<StepClosed::Refused> refused;
};

class StepLedger {
 public:
  // A report may be overtaken by the closing of later steps, whose news comes over other
  // connections; who died between its last push and its report never sends one.
  static constexpr size_t kReportPatience = 16;

  explicit StepLedger(uint32_t shards) : shards_(shards) {}

  // REQUIRES: steps are opened in order, each once.
  void open(Step step, Duration at, std::vector<WorkerId> alive, double learning_rate);

  // Returns whether the step is now closed on all shards. REQUIRES: the step is open and this shard
  // has not closed it.
  bool on_closed(ShardId shard, const StepClosed& closed, Duration at);

  // Workers that were alive when the step opened and have not arrived on all shards that closed it.
  std::vector<WorkerId> stragglers(Step step) const;

  // A report may come before its step is open here, for it travels apart from the closing of the
  // step before; it is kept. One for a step that has been told is ignored.
  void on_report(WorkerId worker, const StepReport& report);

  // Steps whose story is complete, in order. With `all`, also those whose reports are missing.
  std::vector<StepStory> take_told(bool all = false);

  // True run-times of stragglers, each told when its gradient has come whole to every shard.
  std::vector<ArrivalRecord> take_late();

  // Whether on_closed(shard, step) may be called.
  bool expects(ShardId shard, Step step) const;

 private:
  struct Open {
    Duration at{};
    Duration closed_at{};
    double learning_rate = 0.0;
    std::vector<WorkerId> alive;
    std::map<ShardId, StepClosed> closed;
    std::map<WorkerId, StepReport> reports;
  };
  bool all_closed(const Open& open) const { return open.closed.size() == shards_; }
  static bool has_refusal(const Open& open, WorkerId worker);
  // The run-time of a worker over all shards; false if some shard closed without it, then a lower
  // bound.
  static std::pair<Duration, bool> run_time(const Open& open, WorkerId worker);
  static bool reports_complete(const Open& open);
  StepStory tell(Step step, const Open& open) const;

  const uint32_t shards_;
  Step next_ = 0;  // to be opened
  std::map<Step, Open> open_;
  std::map<WorkerId, StepReport> early_reports_;  // for step next_
  // Of stragglers in steps told: the shards that have not got their gradient yet, and the largest
  // run-time known.
  struct Straggler {
    std::set<ShardId> missing_on;
    Duration run_time{};
  };
  std::map<std::pair<Step, WorkerId>, Straggler> stragglers_;
  std::vector<ArrivalRecord> late_news_;
  uint32_t late_since_told_ = 0;
};

}  // namespace drover
