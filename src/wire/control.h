// Control messages: everything that peers send each other except blocks. Structs here, protobuf on
// the wire.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/event.h"
#include "core/ids.h"
#include "core/layout.h"
#include "core/learning_rules.h"
#include "core/peer.h"
#include "core/result.h"
#include "core/run_record.h"
#include "core/slow_rule.h"
#include "core/step_times.h"
#include "core/time.h"
#include "core/training.h"
#include "wire/number_type.h"

namespace drover {

enum class Lane : uint8_t { kControl, kBulk };

// The first message on every connection, from both ends: mutual proof that both know the run's
// token. The token itself is never sent. node/credentials.h defines the proof, node/acceptor.h the
// order of messages.
struct Challenge {
  std::string nonce;  // kNonceBytes random bytes, or empty
  std::string proof;  // kProofBytes that answer the peer's nonce, or empty
  bool operator==(const Challenge&) const = default;
};

// A version of a shard's blocks that a process keeps in memory. After a restart a run may compute
// the same version again, so a kept version is identified by the coordinator's incarnation too.
struct KeptVersion {
  Version version = 0;
  uint64_t incarnation = 0;
  auto operator<=>(const KeptVersion&) const = default;
};

// Address of a lane's MPI messages.
struct MpiPlace {
  uint32_t rank = 0;
  uint32_t tag = 0;
  bool operator==(const MpiPlace&) const = default;
};

// From the process that opened the connection, after both ends have proved that they know the
// token.
struct Hello {
  Role role = Role::kWorker;
  uint32_t index = 0;
  Lane lane = Lane::kControl;
  std::string host;
  int64_t pid = 0;
  std::string address;              // from shards: where workers connect to it
  std::vector<TensorSpec> tensors;  // from workers and the evaluator to the coordinator: the model
  std::optional<Learning> learning = {};  // from workers that bring their own model
  std::vector<KeptVersion> kept = {};     // from shards and standbys
  // On a bulk lane: floats can be sent as MPI messages with this tag, to and from this rank.
  std::optional<MpiPlace> mpi = {};
  bool operator==(const Hello&) const = default;
};

// Why a connection is refused; sent before it is closed.
struct Refusal {
  std::string reason;
  bool retry_later = false;  // a later attempt may be accepted
  bool operator==(const Refusal&) const = default;
};

// Coordinator to shard: the blocks that it holds, and how to update them.
struct Plan {
  uint32_t workers = 0;
  Step steps = 0;
  Step evaluate_every = 0;
  LearningRules learning;
  uint64_t full_samples = 0;             // samples of a step to which all workers contribute
  bool asynchronous = false;             // apply every gradient when it arrives; a step is a round
  std::optional<uint64_t> staleness;     // asynchronous: limit on gradients between two workers
  bool partial_pull = false;             // workers do not wait for all blocks of a version
  Duration push_grace{};                 // how much longer a block with enough gradients stays open
  Step first_step = 0;                   // the version to start from; 0: the initial parameters
  std::string resume_from;               // checkpoint with `first_step`; empty: see `kept`
  std::optional<KeptVersion> kept = {};  // continue from this version in memory
  bool standby = false;                  // keep versions in memory, and replicate to a standby
  uint64_t incarnation = 0;              // of the coordinator; identifies new kept versions
  Step checkpoint_every = 0;   // steps between checkpoints; there is one at the end too; 0: none
  std::string checkpoint_dir;  // the folder of the checkpoints
  std::vector<TensorSpec> tensors;
  BlockPlan blocks;
  bool operator==(const Plan&) const = default;
};

// Whether `version` is written as a checkpoint. Version 0 never is.
inline bool is_checkpoint(Version version, Step every, Step steps) {
  return every > 0 && version > 0 && (version % every == 0 || version == steps);
}

// Coordinator to worker or evaluator: the shards' addresses and their blocks.
struct Welcome {
  std::vector<std::string> shards;  // addresses, by shard
  BlockPlan blocks;
  Step steps = 0;
  Step evaluate_every = 0;
  bool asynchronous = false;  // a pull takes each block in its current version
  // The other fields are for workers.
  uint32_t workers = 0;
  uint32_t batch = 0;  // samples of one gradient
  uint64_t seed = 0;
  NumberType wire_dtype = NumberType::kFloat32;  // number type in which gradients are sent
  std::vector<SlowRule> slow = {};               // injected slowness
  bool partial_pull = false;                     // a pull need not wait for all blocks
  double pull_share = 1.0;                       // partial_pull: share of blocks to wait for
  Duration pull_grace{};  // partial_pull: how much longer to wait for the other blocks
  Step first_step = 0;    // the first step of the run, or after it was resumed
  bool operator==(const Welcome&) const = default;
};

// Coordinator to a process that requested a free index (Hello with kAnyIndex): the job and the
// index with which it may join as a worker. The index is reserved for a short time only.
struct PlaceOffer {
  WorkerId worker = 0;
  std::string job;  // the text of a job file
  bool operator==(const PlaceOffer&) const = default;
};

// Shard to worker or evaluator: both of the receiver's connections are accepted.
struct Connected {
  // If set, floats of the bulk lane are sent as MPI messages, and this is the shard's rank.
  std::optional<uint32_t> mpi_rank = {};
  bool operator==(const Connected&) const = default;
};

// Shard to worker: the blocks of `step` that are held (kHoldFlag) have all that they wait for.
struct GradientNorm {
  Step step = 0;
  double squares = 0.0;  // of their mean gradient, summed
  double largest = 0.0;  // the largest absolute value in it
  bool operator==(const GradientNorm&) const = default;
};

// Worker to shard: close the blocks of `step` that are held. Their mean gradient is multiplied by
// `scale`; or, if it is not to be `used`, forgotten.
struct Release {
  Step step = 0;
  double scale = 1.0;
  bool used = true;
  bool operator==(const Release&) const = default;
};

// The run has so many steps. Coordinator to all: from now on. A worker to the coordinator: it asks
// for this, because its script is done or wants the run to stop.
struct RunLength {
  Step steps = 0;
  bool operator==(const RunLength&) const = default;
};

// Shard to worker: requests the worker's initial parameters of the shard's blocks.
struct WantInitial {
  bool operator==(const WantInitial&) const = default;
};

// Shard or worker to coordinator: the sender is connected and can start the first step.
struct Ready {
  bool operator==(const Ready&) const = default;
};

// Coordinator to shard: how long to wait in `step`. The first one also opens step 0.
struct Decision {
  Step step = 0;
  uint32_t cutoff = 0;          // number of gradients to wait for
  Duration time_limit{};        // since the step's opening on the shard's clock; zero: none
  uint32_t at_least = 1;        // number of gradients to wait for even after the time limit
  std::vector<WorkerId> alive;  // workers that can still contribute
  // The shard reports arrivals (Arrived) in groups of this size; 0: only when the step closes.
  uint32_t report_every = 0;
  double noise_scale = 0.0;  // of the gradients, in samples; 0: unknown
  bool operator==(const Decision&) const = default;
};

// Shard to coordinator: all blocks of the shard have closed `step`.
struct StepClosed {
  struct Arrival {
    WorkerId worker = 0;
    Duration run_time{};
    Step step = 0;  // the closed step; in `late`, an earlier step
    bool operator==(const Arrival&) const = default;
  };
  struct Refused {
    WorkerId worker = 0;
    BlockId block = 0;
    bool operator==(const Refused&) const = default;
  };
  // A worker whose gradient had too large a norm.
  struct Outlier {
    WorkerId worker = 0;
    BlockId block = 0;    // the block with the largest ratio
    uint32_t blocks = 0;  // number of the shard's blocks with too large a norm
    double ratio = 0.0;   // largest norm as a multiple of the typical norm
    bool used = false;    // true: clipped and used; false: dropped
    bool operator==(const Outlier&) const = default;
  };
  Step step = 0;
  Duration elapsed{};             // from opening to the last block's close
  Duration closing{};             // from the last needed arrival to sending the parameters
  Duration undecided{};           // the part of `closing` that waited for a decision
  Duration busy{};                // time that the shard spent on summing, updating and answering
  std::vector<Arrival> arrivals;  // workers whose blocks on this shard were all used
  // Gradients that arrived completely since the previous StepClosed, too late to be used
  // completely. An entry for the closed step means that its worker was faster than the step; the
  // next StepClosed has the entry again.
  std::vector<Arrival> late;
  std::vector<Refused> refused;
  uint64_t samples = 0;    // samples of the update, of the block that has the fewest
  uint32_t gradients = 0;  // asynchronous: gradients applied in the round, of the same block
  // Sums over this shard's blocks, see core/gradient_noise.h; NaN: fewer than two gradients.
  double signal = 0.0;
  double noise = 0.0;
  std::vector<BlockCount> block_counts;  // numbers of gradients of this shard's blocks
  uint64_t digest = 0;                   // of this shard's parameters, after the last step
  std::vector<Outlier> outliers = {};    // by worker
  bool operator==(const StepClosed&) const = default;
};

// Shard to coordinator: gradients that arrived completely in the open step since the last report.
struct Arrived {
  Step step = 0;
  std::vector<StepClosed::Arrival> arrivals;
  bool operator==(const Arrived&) const = default;
};

// Coordinator to worker: the worker's samples in every step from `from` on. A step has `total`
// positions in the stream of samples; the worker's are `count` of them, from `first` on.
struct Share {
  Step from = 0;
  uint64_t first = 0;
  uint32_t count = 0;
  uint64_t total = 0;
  bool operator==(const Share&) const = default;
};

// Worker to coordinator: the worker aborted its gradient of `step` and started `resumed`.
struct Abandoned {
  Step step = 0;
  Step resumed = 0;
  Duration wasted{};
  bool operator==(const Abandoned&) const = default;
};

// Worker to coordinator: statistics of its gradient.
struct StepReport {
  Step step = 0;
  uint32_t samples = 0;
  double loss = 0.0;
  uint32_t correct = 0;
  uint32_t predictions = 0;
  Duration compute{};
  std::optional<double> learning_rate = {};  // requested by the script; absent: the run's
  // Partial pulls: the parameters that the gradient was computed on.
  uint32_t blocks = 0;         // number of all blocks; 0: not reported
  uint32_t fresh = 0;          // blocks in the version of the step, or a newer one
  uint64_t staleness_sum = 0;  // sum over the other blocks of the steps that they are behind
  uint64_t staleness_max = 0;
  std::vector<PullResponse> responses;  // by shard
  bool operator==(const StepReport&) const = default;
};

// Coordinator to worker: from the pull for step `from` on, wait for this share of the blocks.
struct PullShare {
  Step from = 0;
  double share = 1.0;
  bool operator==(const PullShare&) const = default;
};

// Worker to shard, before the gradient: the learning rate from step `from` on.
struct LearningRate {
  Step from = 0;
  double rate = 0.0;
  std::vector<GroupSettings> groups = {};  // of tensors by group, from 1; empty: none has its own
  bool operator==(const LearningRate&) const = default;
};

// Shard to coordinator: the shard's part of the checkpoint of `version` is on the disk, or failed.
struct CheckpointSaved {
  Version version = 0;
  std::string file;  // name in the checkpoint's folder
  uint64_t bytes = 0;
  uint32_t checksum = 0;
  Duration took{};
  CheckpointFailure failure = CheckpointFailure::kNone;
  int os_error = 0;   // kSystem: errno
  std::string error;  // if it failed: the message
  bool operator==(const CheckpointSaved&) const = default;
};

// Coordinator to a spare process of a shard: become the standby of the process that serves it.
struct StandBy {
  std::string address;  // of the serving process
  bool operator==(const StandBy&) const = default;
};

// Shard to its standby: announces a version of the shard's blocks. Its floats follow in frames
// (kReplica), in the order of `blocks` and of Floats.
struct Replica {
  enum Floats : uint32_t { kParameters, kMomentum, kSquares, kAverage };
  static constexpr uint32_t kFloatsMax = 4;
  struct Block {
    uint64_t offset = 0;  // this and the next four: see SavedBlock
    uint32_t length = 0;
    uint64_t updates = 0;
    double beta1_power = 1.0;
    double beta2_power = 1.0;
    uint32_t floats = 0;  // bit f is set if floats of kind f follow
    std::vector<float> lengths = {};
    bool operator==(const Block&) const = default;
  };
  KeptVersion kept;
  Version least = 0;  // the standby may drop versions before this one
  std::vector<Block> blocks;
  bool operator==(const Replica&) const = default;
};

// Standby to its shard: the standby has received the whole version.
struct Replicated {
  Version version = 0;
  bool operator==(const Replicated&) const = default;
};

// Evaluator, or a worker that evaluates, to coordinator: the result of an evaluation.
struct Evaluated {
  Version version = 0;
  double loss = 0.0;
  double accuracy = 0.0;
  uint64_t samples = 0;
  bool operator==(const Evaluated&) const = default;
};

// From the coordinator: the run is over. To the coordinator: the sender cannot continue or, from a
// worker with kCompleted, has completed its work and leaves.
struct Farewell {
  RunOutcome outcome = RunOutcome::kCompleted;
  std::string reason;
  // From the coordinator: the run restarts, and the receiver should join again.
  bool rejoin = false;
  bool operator==(const Farewell&) const = default;
};

using Control = std::variant<Hello, Refusal, Plan, Welcome, WantInitial, Ready, Decision,
                             StepClosed, StepReport, Evaluated, Farewell, Arrived, Share, Abandoned,
                             PullShare, LearningRate, Challenge, CheckpointSaved, StandBy, Replica,
                             Replicated, PlaceOffer, Connected, GradientNorm, Release, RunLength>;

std::string encode_control(const Control& message);

// Checks every count, size and id against wire/limits.h.
Result<Control> decode_control(std::span<const std::byte> bytes);

}  // namespace drover
