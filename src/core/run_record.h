// What a run leaves behind, as values: who took part, what each step did, what was decided and why.
//
// The coordinator says these as they happen; whoever listens (run store, progress line) is a
// RunObserver. Times called `at` are since the start of the run.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/event.h"
#include "core/ids.h"
#include "core/peer.h"
#include "core/result.h"
#include "core/time.h"

namespace drover {

// One worker's part in a step.
struct ArrivalRecord {
  Step step = 0;
  WorkerId worker = 0;
  Duration run_time{};    // from the step's opening to the arrival of its last block
  bool censored = false;  // true: it had not arrived, and run_time is only a lower bound
  Duration compute{};     // what the worker itself spent on the gradient; 0 if it never told
  uint32_t samples = 0;   // behind the gradient; 0 if it never told
};

// What was expected of a step: order statistics of its run-times, in seconds. Of many workers only
// some ranks are kept.
struct ExpectedArrival {
  uint32_t rank = 0;  // 1: the first to arrive
  float mean = 0.0F;
  float low = 0.0F;   // one in ten is earlier
  float high = 0.0F;  // one in ten is later
  bool operator==(const ExpectedArrival&) const = default;
};

struct DecisionRecord {
  Step step = 0;
  uint32_t cutoff = 0;    // gradients to wait for
  uint32_t alive = 0;     // workers that could contribute
  std::string reason;     // in words
  Duration time_limit{};  // since the step's opening; zero: none
  Duration at{};          // since the step's opening: zero, or when it was decided again
  std::vector<ExpectedArrival> expected = {};  // ascending; empty: not decided by a forecast
  bool model_stale = false;  // the learned model is disabled, since others forecast better
};

// In a step, so many blocks of the parameters got so many gradients.
struct BlockCount {
  uint32_t contributors = 0;
  uint32_t blocks = 0;
  bool operator==(const BlockCount&) const = default;
};

// How long a shard was summing, updating and serving in a step.
struct ShardLoad {
  ShardId shard = 0;
  Duration busy{};
  bool operator==(const ShardLoad&) const = default;
};

// Gradients of a worker that were out of line in a step, see --guard.
struct OutlierRecord {
  WorkerId worker = 0;
  uint32_t blocks = 0;  // in which its gradient was
  double ratio = 0.0;   // how many times as large as usual, in the worst of them
  bool used = false;    // made shorter
  bool operator==(const OutlierRecord&) const = default;
};

struct StepRecord {
  Step step = 0;
  Duration at{};              // when the step opened
  Duration elapsed{};         // from opening to the last block closed
  uint32_t contributors = 0;  // workers whose whole gradient was used
  uint32_t late = 0;          // gradients that became whole after their step, since the step before
  uint32_t refused = 0;       // gradients refused for NaN or infinity
  uint64_t samples = 0;       // samples behind the update
  double loss = 0.0;      // mean training loss over those samples, before the update; NaN: unknown
  double accuracy = 0.0;  // share of those samples predicted right; NaN: unknown
  double learning_rate = 0.0;
  WorkerId last_worker = 0;  // the one waited for
  Duration aggregate{};      // the slowest shard's time for summing and updating
  // From the last arrival that was needed to the new parameters leaving the slowest shard, and how
  // much of it was waiting for a decision.
  Duration closing{};
  Duration undecided{};
  // Of this step's gradients; NaN: unknown (fewer than two). |G|^2, the squared length of the true
  // gradient, and tr(Sigma), the variance of one sample's, summed over parameters.
  double signal = std::numeric_limits<double>::quiet_NaN();
  double noise = std::numeric_limits<double>::quiet_NaN();
  double noise_scale =
      std::numeric_limits<double>::quiet_NaN();  // smoothed noise / signal: samples
  // Where workers need not wait for all blocks (--pull), of what the gradients used were computed
  // on, over their workers: the share of blocks that were fresh, mean and least; and how many steps
  // blocks were behind, mean (fresh ones are 0 behind) and most. NaN: not told.
  double fresh_mean = std::numeric_limits<double>::quiet_NaN();
  double fresh_min = std::numeric_limits<double>::quiet_NaN();
  double staleness_mean = std::numeric_limits<double>::quiet_NaN();
  uint64_t staleness_max = 0;
  std::vector<BlockCount> block_counts;      // ascending; empty: not told
  std::vector<ShardLoad> loads;              // by shard; empty: not told
  std::vector<OutlierRecord> outliers = {};  // by worker
};

// Work that was thrown away, since its step had closed.
struct AbandonRecord {
  Step step = 0;
  WorkerId worker = 0;
  Duration wasted{};   // on the worker's clock, from having the parameters to giving up
  Duration restart{};  // on the coordinator's, from the order to stop to hearing of the new start
  Step resumed = 0;    // the step it went on with
};

struct EvaluationRecord {
  Version version = 0;  // parameters after `version` steps
  Duration at{};
  double loss = 0.0;
  double accuracy = 0.0;
  uint64_t samples = 0;
};

// A process of the run.
struct PeerRecord {
  Peer peer = {};
  std::string host = {};
  int64_t pid = 0;
};

struct RunEnd {
  RunOutcome outcome = RunOutcome::kCompleted;
  EndCause cause = EndCause::kUnknown;
  std::string reason = {};  // in words; empty if completed
  Duration elapsed{};       // training only: from the opening of step 0 to the close of the last
  uint64_t parameters_digest =
      0;  // of the final parameters; equal runs have equal digests; 0 unknown
  std::vector<std::pair<Peer, uint64_t>> memory_bytes = {};  // peak resident memory
};

class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // Failure to take a record (disk full) is told at once: a run that cannot be recorded must not go
  // on silently.
  virtual Status on_peer(const PeerRecord& peer) = 0;
  virtual Status on_decision(const DecisionRecord& decision) = 0;
  virtual Status on_step(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) = 0;
  // The true time of somebody recorded as censored earlier.
  virtual Status on_late_arrival(const ArrivalRecord& arrival) = 0;
  virtual Status on_abandoned(const AbandonRecord& abandoned) = 0;
  virtual Status on_evaluation(const EvaluationRecord& evaluation) = 0;
  virtual Status on_event(const EventRecord& event) = 0;
  virtual Status on_end(const RunEnd& end) = 0;
};

}  // namespace drover
