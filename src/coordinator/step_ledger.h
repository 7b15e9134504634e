// StepLedger: collects the reports of shards and workers about each step until the step's summary
// is complete.
//
// Shards report when each worker arrived, and workers report the loss and samples of their
// gradients. The reports come over different connections in any order. A step is closed when all
// shards have closed it. Its summary is complete when the reports of all contributors are in, or
// when kReportPatience later steps have closed without them.
//
// Asynchronous: a step is a round (open_step.h), so no worker is late or censored, and a report
// does not name a round. Each round takes as many reports as it has gradients, in order of arrival.
//
// With partial pulls the next step may open when enough shards have closed this one (advance()):
// policies learn the run-times seen by those shards. The record waits for the other shards.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "coordinator/open_step.h"
#include "coordinator/step_summary.h"
#include "coordinator/straggler_book.h"
#include "core/gradient_noise.h"
#include "core/ids.h"
#include "core/run_record.h"
#include "core/step_times.h"
#include "core/time.h"
#include "wire/control.h"

namespace drover {

class StepLedger {
 public:
  // How many later steps may close before a summary is recorded without missing reports. Reports
  // and closings come over different connections, so closings of later steps may arrive first; many
  // of them, if the coordinator was not scheduled for a while. A worker that died between its last
  // push and its report never sends one.
  static constexpr size_t kReportPatience = 48;
  // Asynchronous: the most reports that may wait for their rounds.
  static constexpr size_t kReportsKept = 100'000;
  static constexpr Step kStepsRemembered = StragglerBook::kStepsRemembered;

  // `names`: the ids of the shards; needed only if advance() may be called before each shard has
  // closed a step.
  explicit StepLedger(uint32_t shards, bool asynchronous = false, std::vector<ShardId> names = {})
      : shards_(shards),
        mode_(asynchronous ? StepMode::kAsynchronous : StepMode::kSynchronous),
        names_(std::move(names)) {}

  // The run continues from a checkpoint. Call before anything else.
  void resume(Step first, const SavedNoise& noise) {
    next_ = first;
    noise_scale_.restore(noise);
  }
  SavedNoise noise() const { return noise_scale_.save(); }

  // A shard opens a step when it has closed the step before; workers start on it when the last
  // shard has opened it. Each shard measures run-times from its own opening. The ledger converts
  // them to run-times since the last shard's opening. A shard's lead is measured by when its
  // closing arrived at the coordinator, so that clocks of different machines are never compared.
  // REQUIRES: steps are opened in order, each once; `alive` ascends.
  void open(Step step, Duration at, std::vector<WorkerId> alive, double learning_rate);

  // In the step opened last, this worker is still busy with an earlier gradient that it may finish.
  // If the worker does not arrive, its run-time is unknown and not a lower bound.
  void on_busy(WorkerId worker);

  // Returns whether the step is now closed on all shards. REQUIRES: expects(shard, closed.step).
  bool on_closed(ShardId shard, StepClosed closed, Duration at);

  // Whether on_closed(shard, step) may be called: the step is open, and this shard has not closed
  // it.
  bool expects(ShardId shard, Step step) const;

  // Whether this shard has closed the step. REQUIRES: the step was opened, and its summary was not
  // taken.
  bool is_closed_on(Step step, ShardId shard) const {
    return open_.at(step).closed.contains(shard);
  }
  bool is_closed(Step step) const { return all_closed(open_.at(step)); }
  // Whether every step that was opened is closed on all shards.
  bool everything_closed() const;
  // The number of steps before `step` that are not closed on all shards.
  Step steps_open_before(Step step) const;
  // Treats the step as closed, although some shards have not closed it yet.
  // REQUIRES: at least one shard has closed it; steps are closed or advanced in order.
  void advance(Step step, Duration at);

  // A worker is lost: it will deliver nothing more in the open steps.
  void on_lost(WorkerId worker);

  // Workers that were alive when the step opened and have not arrived on all shards.
  // REQUIRES (here and in times()): the step is closed on all shards or advanced, and its summary
  // was not taken.
  std::vector<WorkerId> stragglers(Step step) const;

  // See times_of().
  StepTimes times(Step step, uint32_t workers) const;

  // A report that arrives before its step is open here is kept: it may be earlier than the closing
  // of the step before, which comes over another connection. A report of a step whose summary was
  // taken goes to the stragglers' records, or is ignored.
  void on_report(WorkerId worker, const StepReport& report);

  // Workers that arrived in a closed step and whose report about it is missing.
  std::set<WorkerId> unreported() const;

  // Returns complete summaries in order of steps, each once. With `all`, also those of closed steps
  // with missing reports.
  std::vector<StepSummary> take_summaries(bool all = false);

  // Returns the true run-times of stragglers, as soon as they are known.
  std::vector<LateRunTime> take_late() { return stragglers_.take_run_times(); }
  // Returns the records of stragglers with a report. With `all`, also those without.
  std::vector<ArrivalRecord> take_late_records(bool all = false) {
    return stragglers_.take_records(all);
  }

  // How much earlier than the last shard `shard` opened the newest step.
  Duration lead(ShardId shard) const;

  // The noise scale of the gradients of all closed steps, in samples; 0: unknown.
  double noise_scale() const { return noise_scale_.value(); }

  // The number of shards that have blocks.
  uint32_t shards() const { return shards_; }

  // The number of entries kept here.
  size_t pending() const { return open_.size() + unassigned_.size() + stragglers_.size(); }

 private:
  struct Closing {
    Step step = 0;
    Duration received{};
  };

  bool all_closed(const OpenStep& open) const { return open.closed.size() == shards_; }
  const OpenStep& closed_step(Step step) const;
  void finish(Step step, OpenStep& open);
  void note_stragglers(Step step, const OpenStep& open);
  void note_straggler(Step step, WorkerId worker, const OpenStep& open, bool known_to_policy);
  void assign_reports();
  void forget_unused(const OpenStep& open);

  const uint32_t shards_;
  const StepMode mode_;
  const std::vector<ShardId> names_;
  Step next_ = 0;  // to be opened
  std::map<Step, OpenStep> open_;
  std::map<ShardId, Closing> last_closing_;
  std::map<Step, std::map<WorkerId, StepReport>> early_reports_;  // of steps not open yet
  std::deque<std::pair<WorkerId, StepReport>> unassigned_;        // asynchronous, in order
  StragglerBook stragglers_;
  NoiseScale noise_scale_;
};

}  // namespace drover
