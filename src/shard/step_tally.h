// StepTally: collects arrivals, refusals and counts of each step over a shard's blocks, for the
// report to the coordinator when the step closes.
//
// A worker's gradient has arrived when its last block has. If a block was late for its step, the
// gradient is tracked until it is complete, and then reported with a later step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/gradient_noise.h"
#include "core/ids.h"
#include "core/membership.h"
#include "core/time.h"
#include "wire/control.h"

namespace drover {

class StepTally {
 public:
  StepTally() = default;
  // `blocks`: the number of blocks of this shard.
  StepTally(uint32_t workers, size_t blocks) : workers_(workers), blocks_(blocks) {}

  // The open step: the lowest step that a block still collects for.
  Step step() const { return step_; }
  // The run continues at `step`. REQUIRES: no step was opened.
  void start_at(Step step) { step_ = step; }
  // Workers may begin `step`, the open step or one ahead of it. Only the first call for a step
  // counts.
  void open(Step step, TimePoint now);
  // When the open step opened. REQUIRES: open(step()) was called.
  TimePoint opened() const { return open_since_; }
  // Zero if the opening of that step is not known, or was forgotten.
  Duration since_opening(Step step, TimePoint now) const;

  // A worker's block arrived in time for `step`. Returns whether `step` is the open step and the
  // worker's gradient is now complete.
  bool on_block(WorkerId worker, Step step, TimePoint now);
  // A worker's block had NaN or infinity.
  void on_refused(WorkerId worker, Step step, BlockId block);
  // The norm of a worker's block was `ratio` times the typical norm. `used`: clipped, not dropped.
  void on_outlier(WorkerId worker, Step step, BlockId block, double ratio, bool used);
  // A worker's block arrived too late for `step`.
  void on_late(WorkerId worker, Step step, TimePoint now);
  // A push for `step`, which its block has not reached, was dropped.
  void on_dropped(WorkerId worker, Step step);
  // A worker is lost. It does not complete its gradient, and its next incarnation sends another
  // one.
  void forget(WorkerId worker);

  // A block closed `step` with that many samples and gradients.
  void on_block_closed(Step step, uint64_t samples, uint32_t gradients, const NoiseEstimate& noise);
  // The same for a round of an asynchronous run.
  void on_round_closed(Step step, uint64_t samples, uint32_t gradients);
  // A block of `step` could have closed up to `longest` before the step's decision arrived.
  void on_undecided(Step step, Duration longest) { of(step).undecided = longest; }

  // Arrivals in the open step that were not reported yet, if there are at least `every` of them.
  // Nothing if there are fewer, or if `every` is 0.
  std::optional<Arrived> take_unreported(uint32_t every);

  // The open step closes: call summary(); in synchronous runs add_arrivals(), which adds the
  // arrivals of members; then open_next().
  StepClosed summary(TimePoint now);
  void add_arrivals(const Membership& members, StepClosed& closed);
  void open_next(TimePoint now);

  // The number of entries kept for later.
  size_t pending() const {
    return opened_.size() + progress_.size() + straggling_.size() + late_.size();
  }

 private:
  // The state of one step. Vectors are by worker.
  struct Progress {
    std::vector<uint32_t> blocks;    // answered in time
    std::vector<uint32_t> late;      // too late for their block, while the step is still open
    std::vector<Duration> run_time;  // of the last block
    std::vector<StepClosed::Refused> refused;
    std::map<WorkerId, StepClosed::Outlier> outliers;
    std::optional<uint64_t> samples_min;    // of the block with the fewest samples
    std::optional<uint32_t> gradients_min;  // of the block with the fewest gradients
    NoiseEstimate noise;                    // over the closed blocks
    Duration undecided{};
    std::map<uint32_t, uint32_t> counts;  // the number of blocks, by their number of gradients
  };
  Progress& of(Step step);

  uint32_t workers_ = 0;
  size_t blocks_ = 0;
  Step step_ = 0;
  TimePoint open_since_{};
  std::map<Step, TimePoint> opened_;  // recent openings, to measure how late pushes are
  std::map<Step, Progress> progress_;
  std::map<std::pair<Step, WorkerId>, uint32_t> straggling_;  // arrived blocks of late gradients
  std::vector<StepClosed::Arrival> unreported_;               // arrivals in the open step
  std::map<std::pair<Step, WorkerId>, Duration> late_;        // complete since the last summary()
};

}  // namespace drover
