// StepLedger: puts together what shards and workers say about each step, until the whole story is
// told.
//
// Shards tell who arrived when, workers tell how their gradient was; the two come over different
// connections in any order. A step is finished when all shards have closed it, and told when the
// reports of its contributors are in or kReportPatience later steps have finished without them.
//
// Where workers run freely a step is a round: a worker may be in it several times or not at all, so
// nobody is late or censored, and a report belongs to no step by itself. Rounds take reports in the
// order in which they come, as many as they have gradients.
//
// Where workers need not wait for all blocks, the next step may open when enough shards have closed
// this one (advance()): policies learn what those have seen. The record waits for the others.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/run_record.h"
#include "core/step_times.h"
#include "core/time.h"
#include "server/gradient_noise.h"
#include "wire/control.h"

namespace drover {

struct StepStory {
  StepRecord step;
  std::vector<ArrivalRecord>
      arrivals;  // one for every worker alive when the step opened, by worker; free-running:
                 // for every one of which a gradient was used
  std::vector<StepClosed::Refused> refused;
  std::vector<StepClosed::Outlier> outliers;  // by worker, over all shards
  double noise_scale_told = 0.0;              // what was known when the step opened
};

// A straggler's gradient has come whole to every shard.
struct LateNews {
  Step step = 0;
  WorkerId worker = 0;
  Duration run_time{};
  // See StepLedger::on_busy(): what it took says nothing of how slow it is. Or nobody was told that
  // it straggled.
  bool was_busy = false;
};

class StepLedger {
 public:
  // A report may be overtaken by the closing of later steps, whose news comes over other
  // connections; who died between its last push and its report never sends one.
  // A coordinator that did not get a core for a while reads the closings of all these steps first.
  static constexpr size_t kReportPatience = 48;
  // Where workers run freely: reports that wait for the rounds they belong to.
  static constexpr size_t kReportsKept = 100'000;
  // So many steps later nobody asks any more how long a straggler took.
  static constexpr Step kStepsRemembered = 64;

  // `names`: of the shards, where a step may advance() before all are heard of.
  explicit StepLedger(uint32_t shards, bool free_running = false, std::vector<ShardId> names = {})
      : shards_(shards), free_running_(free_running), names_(std::move(names)) {}

  // The run goes on from a checkpoint. Call before anything else.
  void resume(Step first, const SavedNoise& noise) {
    next_ = first;
    noise_scale_.restore(noise);
  }
  SavedNoise noise() const { return noise_scale_.save(); }

  // Shards open a step each when they have closed the one before, workers start on it when the last
  // of them has: run-times, which every shard counts from its own opening, are told from that
  // moment. How much earlier a shard opened is taken from when its news came here, so that no two
  // clocks are compared.
  // REQUIRES: steps are opened in order, each once; `alive` ascends.
  void open(Step step, Duration at, std::vector<WorkerId> alive, double learning_rate);

  // In the step that was opened last this worker is still busy with an earlier gradient, on our
  // behalf: if it does not arrive, that shows nothing of its run-time.
  void on_busy(WorkerId worker);

  // Returns whether the step is now closed on all shards. REQUIRES: the step is open and this shard
  // has not closed it.
  bool on_closed(ShardId shard, StepClosed closed, Duration at);

  // Whether this shard has closed the step. REQUIRES: the step was opened, and not told yet.
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

  // A worker is gone: what it has not delivered in the steps that are open it never will.
  void on_lost(WorkerId worker);

  // Workers that were alive when the step opened and have not arrived on all shards.
  // REQUIRES (here and below): the step is closed on all shards or advanced, and was not told yet.
  std::vector<WorkerId> stragglers(Step step) const;

  // What the step has shown of the run-times of workers 0, 1, ..., `workers` - 1. Who was lost
  // before it arrived has shown nothing: it was not slow, it was gone.
  StepTimes times(Step step, uint32_t workers) const;

  // A report may come before its step is open here, for it travels apart from the closing of the
  // step before; it is kept. One for a step that has been told is ignored.
  void on_report(WorkerId worker, const StepReport& report);

  // Workers whose report of a step that is closed is missing, though they arrived in it.
  std::set<WorkerId> unreported() const;

  // Steps whose story is complete, in order. With `all`, also those whose reports are missing.
  std::vector<StepStory> take_told(bool all = false);

  // True run-times of stragglers, at once.
  std::vector<LateNews> take_late();
  // The same for the record, when their reports are in. With `all`, also those whose are not.
  std::vector<ArrivalRecord> take_late_records(bool all = false);

  // How much earlier than everywhere `shard` opened the step that was opened last.
  Duration lead(ShardId shard) const;

  // Of the gradients, after all steps that are closed everywhere, in samples; 0: unknown.
  double noise_scale() const { return noise_scale_.value(); }

  // That have blocks.
  uint32_t shards() const { return shards_; }

  // How much is kept here, in entries.
  size_t pending() const {
    return open_.size() + undealt_.size() + stragglers_.size() + unreported_.size();
  }

  // Whether on_closed(shard, step) may be called.
  bool expects(ShardId shard, Step step) const;

 private:
  // What became of one worker over all shards.
  struct Outcome {
    Duration run_time{};   // if some shard closed without it, a lower bound
    bool arrived = false;  // everywhere
  };
  struct Open {
    Duration at{};
    Duration closed_at{};
    double learning_rate = 0.0;
    std::vector<WorkerId> alive;
    std::set<WorkerId> gone;  // of those, lost since
    std::set<WorkerId> busy;  // of those, see on_busy()
    double noise_scale_told = 0.0;
    std::map<ShardId, Duration> leads;  // see open()
    std::map<ShardId, StepClosed> closed;
    std::map<WorkerId, StepReport> reports;  // the last of each
    std::vector<StepReport> round;           // free-running: all that were dealt to it
    // Since it is closed on all shards:
    std::vector<Outcome> outcomes;  // in the order of `alive`
    std::set<WorkerId> refused;     // for NaN or infinity
    std::set<WorkerId> outliers;    // whose gradient was not used for being out of line
    NoiseEstimate noise;
    double noise_scale = 0.0;  // after this step
    uint32_t contributors = 0;
    size_t reports_missing = 0;    // of workers that arrived, or of gradients of the round
    bool advanced = false;         // see advance()
    std::set<WorkerId> straggled;  // then: who had not arrived on the shards that had closed
  };
  bool all_closed(const Open& open) const { return open.closed.size() == shards_; }
  const Open& closed_step(Step step) const;
  void note_late(ShardId shard, const std::vector<StepClosed::Arrival>& late);
  void record_late(ArrivalRecord record, const StepReport& report);
  void note_stragglers(Step step, const Open& open);
  void note_straggler(Step step, WorkerId worker, const Open& open, bool untold);
  void note_more_stragglers(Step step, const Open& open);
  void resolve(ShardId shard, Step step, const StepClosed& closed);
  void note_late(ShardId shard, Step step, WorkerId worker, Duration run_time);
  void sum_up(Open& open) const;
  Outcome outcome_of(const Open& open, WorkerId worker) const;
  void deal_reports();
  void forget_unused(const Open& open);
  static bool is_refused(const Open& open, WorkerId worker);
  static bool contributed(const Open& open, size_t position);
  static bool took_part(const Open& open, size_t position, const StepReport& report);
  StepStory tell(Step step, const Open& open) const;
  void tell_freshness(const Open& open, StepRecord& record) const;
  void tell_arrivals(const Open& open, StepStory& story) const;
  void tell_loss(const Open& open, StepRecord& record) const;
  static void tell_outliers(const Open& open, StepStory& story);

  const uint32_t shards_;
  const bool free_running_;
  const std::vector<ShardId> names_;
  Step next_ = 0;  // to be opened
  std::map<Step, Open> open_;
  struct News {
    Step step = 0;
    Duration heard{};
  };
  std::map<ShardId, News> last_news_;                             // each shard's last closing
  std::map<Step, std::map<WorkerId, StepReport>> early_reports_;  // for steps to be opened
  std::deque<std::pair<WorkerId, StepReport>> undealt_;           // free-running, in order
  // Of stragglers in steps told: the shards that have not got their gradient yet, and the largest
  // run-time known.
  struct Straggler {
    std::map<ShardId, Duration> missing_on;  // with the lead each had
    Duration run_time{};
    bool was_busy = false;
    std::optional<StepReport> report;
  };
  std::map<std::pair<Step, WorkerId>, Straggler> stragglers_;
  std::vector<LateNews> late_news_;
  std::map<std::pair<Step, WorkerId>, ArrivalRecord> unreported_;  // late, without a report
  std::vector<ArrivalRecord> late_records_;
  uint32_t late_since_told_ = 0;
  NoiseScale noise_scale_;
};

}  // namespace drover
