// StepTally: what a shard's blocks have seen of each step, until it reports to the coordinator
// that the step has closed.
//
// A worker's gradient has arrived when its last block has. A gradient of which a block came too
// late is followed until it is whole, and then reported with a later step.
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
  // `blocks`: of this shard.
  StepTally(uint32_t workers, size_t blocks) : workers_(workers), blocks_(blocks) {}

  // The open step: the least that some block is still collecting for.
  Step step() const { return step_; }
  // The run continues at `step`. REQUIRES: no step was opened.
  void start_at(Step step) { step_ = step; }
  // Workers may begin `step`, the open one or one that is ahead of it. Only the first call counts.
  void open(Step step, TimePoint now);
  // Since when the open step is open. REQUIRES: open(step()).
  TimePoint opened() const { return open_since_; }
  // Zero if that step is not known, or not any more.
  Duration since_opening(Step step, TimePoint now) const;

  // A block of a worker came in time for `step`. Returns whether that makes its gradient whole,
  // and that in the open step.
  bool on_block(WorkerId worker, Step step, TimePoint now);
  // It had NaN or infinity.
  void on_refused(WorkerId worker, Step step, BlockId block);
  // It was so many times as large as usual, and was `used` nevertheless or not.
  void on_outlier(WorkerId worker, Step step, BlockId block, double ratio, bool used);
  // A block came too late for `step`.
  void on_late(WorkerId worker, Step step, TimePoint now);
  // A block for `step`, which its block has not reached, was dropped.
  void on_dropped(WorkerId worker, Step step);
  // A lost worker does not finish what it has begun to send, and its next incarnation sends another
  // gradient.
  void forget(WorkerId worker);

  // A block closed `step` with so many samples and gradients.
  void on_block_closed(Step step, uint64_t samples, uint32_t gradients, const NoiseEstimate& noise);
  // The same of a round, in asynchronous runs.
  void on_round_closed(Step step, uint64_t samples, uint32_t gradients);
  // A block of `step` could have closed so long before its decision came.
  void on_undecided(Step step, Duration longest) { of(step).undecided = longest; }

  // Arrivals in the open step that were not reported yet, if there are at least `every`; nothing if
  // there are fewer or `every` is 0.
  std::optional<Arrived> take_news(uint32_t every);

  // The open step closes. First summary(), to which add_arrivals() adds what is known of members
  // that push every step, then open_next().
  StepClosed summary(TimePoint now);
  void add_arrivals(const Membership& members, StepClosed& closed);
  void open_next(TimePoint now);

  // How much is kept for later, in entries.
  size_t pending() const {
    return opened_.size() + progress_.size() + straggling_.size() + late_.size();
  }

 private:
  // How far each worker is in one step.
  struct Progress {
    std::vector<uint32_t> blocks;    // answered in time, by worker
    std::vector<uint32_t> late;      // too late for their block, though the step is still open
    std::vector<Duration> run_time;  // of the last one
    std::vector<StepClosed::Refused> refused;
    std::map<WorkerId, StepClosed::Outlier> outliers;
    std::optional<uint64_t> samples_min;    // behind the update of the least served block
    std::optional<uint32_t> gradients_min;  // the same of a round
    NoiseEstimate noise;                    // over the blocks that have closed
    Duration undecided{};
    std::map<uint32_t, uint32_t> counts;  // of blocks, by how many gradients they got
  };
  Progress& of(Step step);

  uint32_t workers_ = 0;
  size_t blocks_ = 0;
  Step step_ = 0;
  TimePoint open_since_{};
  std::map<Step, TimePoint> opened_;  // of the recent past, to measure how late pushes are
  std::map<Step, Progress> progress_;
  std::map<std::pair<Step, WorkerId>, uint32_t> straggling_;  // blocks seen of gradients not whole
  std::vector<StepClosed::Arrival> news_;                     // of the open step, not reported yet
  std::map<std::pair<Step, WorkerId>, Duration> late_;        // whole since the last summary()
};

}  // namespace drover
