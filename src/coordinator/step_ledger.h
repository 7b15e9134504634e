// StepLedger: collects what shards and workers report about each step until the step's summary is
// complete.
//
// Shards report who arrived when, workers report how their gradient was; the two come over
// different connections in any order. A step is closed when all shards have closed it. Its summary
// is complete when the reports of its contributors are in, or when kReportPatience later steps have
// closed without them.
//
// Asynchronous: a step is a round (open_step.h), so no worker is late or censored, and a report
// belongs to no step by itself. Rounds take reports in the order in which they come, as many as
// they have gradients.
//
// With partial pulls the next step may open when enough shards have closed this one (advance()):
// policies learn what those shards have seen. The record waits for the others.
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
  // A report may be overtaken by the closing of later steps, which comes over other connections. A
  // worker that died between its last push and its report never sends one. A coordinator that did
  // not get a core for a while reads the closings of all these steps first.
  static constexpr size_t kReportPatience = 48;
  // Asynchronous: reports that wait for the rounds they belong to.
  static constexpr size_t kReportsKept = 100'000;
  static constexpr Step kStepsRemembered = StragglerBook::kStepsRemembered;

  // `names`: of the shards, where a step may advance() before every shard has closed one.
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

  // Shards open a step when they have closed the one before; workers start on it when the last
  // shard has. Every shard counts run-times from its own opening; they are reported from that of
  // the last shard. How much earlier a shard opened is taken from when its closing came here, so
  // that no two clocks are compared.
  // REQUIRES: steps are opened in order, each once; `alive` ascends.
  void open(Step step, Duration at, std::vector<WorkerId> alive, double learning_rate);

  // In the step that was opened last this worker is still busy with an earlier gradient that the
  // server wants: if it does not arrive, that shows nothing of its run-time.
  void on_busy(WorkerId worker);

  // Returns whether the step is now closed on all shards. REQUIRES: expects(shard, closed.step).
  bool on_closed(ShardId shard, StepClosed closed, Duration at);

  // Whether on_closed(shard, step) may be called: the step is open and this shard has not closed
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
  // How many steps before `step` are not.
  Step steps_open_before(Step step) const;
  // The step counts as closed, though some shards have not closed it yet.
  // REQUIRES: some have; steps are closed or advanced in order.
  void advance(Step step, Duration at);

  // A worker is lost: what it has not delivered in the steps that are open it never will.
  void on_lost(WorkerId worker);

  // Workers that were alive when the step opened and have not arrived on all shards.
  // REQUIRES (here and in times()): the step is closed on all shards or advanced, and its summary
  // was not taken.
  std::vector<WorkerId> stragglers(Step step) const;

  // See times_of().
  StepTimes times(Step step, uint32_t workers) const;

  // A report may come before its step is open here, because it travels apart from the closing of
  // the step before; it is kept. One for a step whose summary was taken reaches the stragglers'
  // records, or is ignored.
  void on_report(WorkerId worker, const StepReport& report);

  // Workers whose report of a step that is closed is missing, though they arrived in it.
  std::set<WorkerId> unreported() const;

  // Summaries that are complete, in order of steps, each once. With `all`, also those of closed
  // steps whose reports are missing.
  std::vector<StepSummary> take_summaries(bool all = false);

  // True run-times of stragglers, at once.
  std::vector<LateRunTime> take_late() { return stragglers_.take_run_times(); }
  // The same for the record, when their reports are in. With `all`, also those whose are not.
  std::vector<ArrivalRecord> take_late_records(bool all = false) {
    return stragglers_.take_records(all);
  }

  // How much earlier than the last shard `shard` opened the step that was opened last.
  Duration lead(ShardId shard) const;

  // Of the gradients, after all steps that are closed everywhere, in samples; 0: unknown.
  double noise_scale() const { return noise_scale_.value(); }

  // That have blocks.
  uint32_t shards() const { return shards_; }

  // How much is kept here, in entries.
  size_t pending() const { return open_.size() + unassigned_.size() + stragglers_.size(); }

 private:
  struct Closing {
    Step step = 0;
    Duration heard{};
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
  std::map<Step, std::map<WorkerId, StepReport>> early_reports_;  // for steps to be opened
  std::deque<std::pair<WorkerId, StepReport>> unassigned_;        // asynchronous, in order
  StragglerBook stragglers_;
  NoiseScale noise_scale_;
};

}  // namespace drover
