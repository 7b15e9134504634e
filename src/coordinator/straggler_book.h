// StragglerBook: tracks gradients that missed their step until their run-times are known.
//
// A straggler's run-time is known when its whole gradient has arrived on every shard. A policy
// learns it at once (take_run_times()). The record gets it when the worker's report has arrived,
// too (take_records()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/run_record.h"
#include "core/time.h"
#include "wire/control.h"

namespace drover {

// The true run-time of a straggler.
struct LateRunTime {
  Step step = 0;
  WorkerId worker = 0;
  Duration run_time{};
  // The run-time is no measure of the worker's speed: the worker was busy with an earlier gradient
  // (see StepLedger::on_busy()), or policies never saw it as a straggler.
  bool was_busy = false;
};

// Converts a run-time since this shard opened the step to one since the last shard opened it,
// `lead` later. At least 1 ns, because `lead` is only an estimate.
Duration without_lead(Duration run_time, Duration lead);

class StragglerBook {
 public:
  // A straggler is forgotten this many steps after its step.
  static constexpr Step kStepsRemembered = 64;

  // A gradient that has not arrived on some shards.
  struct Straggler {
    std::map<ShardId, Duration> missing_on;  // the shard's lead, see without_lead()
    Duration run_time{};                     // the largest known so far
    bool was_busy = false;                   // see LateRunTime
    std::optional<StepReport> report;
  };

  // The gradient of this worker missed this step. REQUIRES: it was not added before.
  void add(Step step, WorkerId worker, Straggler straggler);

  // The gradient is complete on this shard, `run_time` after the shard opened the step. Ignored
  // unless the shard was missing.
  void on_arrived(ShardId shard, Step step, WorkerId worker, Duration run_time);

  // Ignored unless the report is about a straggler whose record was not taken yet.
  void on_report(WorkerId worker, const StepReport& report);

  // Step `newest` has closed: forgets stragglers of steps more than kStepsRemembered before it.
  // Those that have arrived are recorded without a report.
  void forget_before(Step newest);

  // Run-times that became known since the last call.
  std::vector<LateRunTime> take_run_times() { return std::exchange(run_times_, {}); }
  // How many became known since the last call of this function.
  uint32_t take_count() { return std::exchange(count_, 0); }
  // Returns the records of arrived stragglers with a report. With `all`, also those without.
  std::vector<ArrivalRecord> take_records(bool all);

  // The number of entries kept.
  size_t size() const { return stragglers_.size() + unreported_.size(); }

 private:
  using Key = std::pair<Step, WorkerId>;
  void record(ArrivalRecord record, const StepReport& report);

  std::map<Key, Straggler> stragglers_;
  std::map<Key, ArrivalRecord> unreported_;  // arrived, without a report
  std::vector<LateRunTime> run_times_;
  std::vector<ArrivalRecord> records_;
  uint32_t count_ = 0;
};

}  // namespace drover
