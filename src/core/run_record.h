// The records of a run: its processes, steps, arrivals, decisions and evaluations.
//
// The coordinator reports each record when it happens to a RunObserver (run file, progress line).
// Times named `at` are since the start of the run, if not said otherwise.
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

// The arrival of one worker's gradient in a step.
struct ArrivalRecord {
  Step step = 0;
  WorkerId worker = 0;
  Duration run_time{};    // from the step's opening to the arrival of the gradient's last block
  bool censored = false;  // true: it has not arrived, and run_time is a lower bound
  Duration compute{};     // time that the worker computed the gradient; 0: not reported
  uint32_t samples = 0;   // samples of the gradient; 0: not reported
};

// The forecast of a step: order statistics of its run-times, in seconds. With many workers only
// some ranks are recorded.
struct ExpectedArrival {
  uint32_t rank = 0;  // 1: the first to arrive
  float mean = 0.0F;
  float low = 0.0F;   // 10th percentile
  float high = 0.0F;  // 90th percentile
  bool operator==(const ExpectedArrival&) const = default;
};

struct DecisionRecord {
  Step step = 0;
  uint32_t cutoff = 0;    // number of gradients to wait for
  uint32_t alive = 0;     // number of workers that could contribute
  std::string reason;     // text for people
  Duration time_limit{};  // since the step's opening; zero: none
  Duration at{};          // since the step's opening; zero: the first decision, else a review
  std::vector<ExpectedArrival> expected = {};  // by rank; empty: not decided by a forecast
  bool model_stale = false;  // the learned model is disabled, since other forecasts are better
};

// `blocks` blocks of the parameters received `contributors` gradients each in a step.
struct BlockCount {
  uint32_t contributors = 0;
  uint32_t blocks = 0;
  bool operator==(const BlockCount&) const = default;
};

// Time that a shard was summing, updating and serving in a step.
struct ShardLoad {
  ShardId shard = 0;
  Duration busy{};
  bool operator==(const ShardLoad&) const = default;
};

// A worker's gradient whose norm was too large in a step (--guard).
struct OutlierRecord {
  WorkerId worker = 0;
  uint32_t blocks = 0;  // number of blocks in which the norm was too large
  double ratio = 0.0;   // norm as a multiple of the typical norm, in the worst block
  bool used = false;    // true: clipped and used; false: dropped
  bool operator==(const OutlierRecord&) const = default;
};

struct StepRecord {
  Step step = 0;
  Duration at{};              // when the step opened
  Duration elapsed{};         // from opening to the last block closed
  uint32_t contributors = 0;  // workers whose whole gradient was used
  // Gradients of earlier steps that arrived completely since the previous step closed.
  uint32_t late = 0;
  uint32_t refused = 0;   // gradients refused for NaN or infinity
  uint64_t samples = 0;   // samples of the update
  double loss = 0.0;      // mean training loss over those samples, before the update; NaN: unknown
  double accuracy = 0.0;  // share of correct predictions on those samples; NaN: unknown
  double learning_rate = 0.0;
  WorkerId last_worker = 0;  // the last contributor to arrive
  Duration aggregate{};      // the slowest shard's time for summing and updating
  // On the slowest shard, from the last arrival that was needed until it sends the new parameters.
  Duration closing{};
  Duration undecided{};  // the part of `closing` that waited for a decision
  // Estimates from this step's gradients (core/gradient_noise.h): |G|^2, the squared length of the
  // true gradient, and tr(Sigma), the variance of one sample's gradient, summed over parameters.
  // NaN: unknown (fewer than two gradients).
  double signal = std::numeric_limits<double>::quiet_NaN();
  double noise = std::numeric_limits<double>::quiet_NaN();
  // Smoothed noise / signal, in samples.
  double noise_scale = std::numeric_limits<double>::quiet_NaN();
  // Partial pulls (--pull): of the parameters that the used gradients were computed on, over their
  // workers: the share of fresh blocks (mean and minimum), and the number of steps that a block was
  // behind (mean and maximum; 0 for fresh blocks). NaN: not reported.
  double fresh_mean = std::numeric_limits<double>::quiet_NaN();
  double fresh_min = std::numeric_limits<double>::quiet_NaN();
  double staleness_mean = std::numeric_limits<double>::quiet_NaN();
  uint64_t staleness_max = 0;
  std::vector<BlockCount> block_counts;      // by contributors; empty: not reported
  std::vector<ShardLoad> loads;              // by shard; empty: not reported
  std::vector<OutlierRecord> outliers = {};  // by worker
};

// A gradient that a worker aborted, since its step had closed.
struct AbandonRecord {
  Step step = 0;
  WorkerId worker = 0;
  Duration wasted{};   // on the worker's clock, from receiving the parameters to the abort
  Duration restart{};  // on the coordinator's clock, from the stop order to the worker's report
  Step resumed = 0;    // the step that the worker continued with
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
  std::string reason = {};  // text for people; empty if completed
  Duration elapsed{};       // training only: from the opening of step 0 to the close of the last
  // Digest of the final parameters; equal runs have equal digests. 0: unknown.
  uint64_t parameters_digest = 0;
  std::vector<std::pair<Peer, uint64_t>> memory_bytes = {};  // peak resident memory
};

class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // An Error means that the record could not be stored, e.g. because the disk is full. The run ends
  // then: it must not continue without a record.
  virtual Status on_peer(const PeerRecord& peer) = 0;
  virtual Status on_decision(const DecisionRecord& decision) = 0;
  virtual Status on_step(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) = 0;
  // The run-time of an arrival that was recorded as censored.
  virtual Status on_late_arrival(const ArrivalRecord& arrival) = 0;
  virtual Status on_abandoned(const AbandonRecord& abandoned) = 0;
  virtual Status on_evaluation(const EvaluationRecord& evaluation) = 0;
  virtual Status on_event(const EventRecord& event) = 0;
  virtual Status on_end(const RunEnd& end) = 0;
};

}  // namespace drover
