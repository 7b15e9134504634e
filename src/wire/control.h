// Control messages: what peers tell each other besides blocks. Structs here, protobuf on the wire.
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

// First on every connection, from both ends: prove to me that you know the run's token, which never
// travels itself. node/credentials.h says what is proved, and node/acceptor.h in which order.
struct Challenge {
  std::string nonce;  // kNonceBytes of chance, or empty
  std::string proof;  // kProofBytes that answer the other end's nonce, or empty
  bool operator==(const Challenge&) const = default;
};

// A version of a shard's blocks that a process keeps in memory. Runs that start over may make the
// same version twice; `life` tells which of the coordinator's lives it was made in.
struct KeptVersion {
  Version version = 0;
  uint64_t incarnation = 0;
  auto operator<=>(const KeptVersion&) const = default;
};

// Where MPI messages of a lane go.
struct MpiPlace {
  uint32_t rank = 0;
  uint32_t tag = 0;
  bool operator==(const MpiPlace&) const = default;
};

// From whoever opened the connection, once both ends have proved what they know: who I am.
struct Hello {
  Role role = Role::kWorker;
  uint32_t index = 0;
  Lane lane = Lane::kControl;
  std::string host;
  int64_t pid = 0;
  std::string address;              // a shard's: where workers reach it
  std::vector<TensorSpec> tensors;  // a worker's or evaluator's, to the coordinator: its model
  std::optional<Learning> learning = {};  // a worker's whose model is not the run's
  std::vector<KeptVersion> kept = {};     // a shard's or standby's
  // On a bulk lane: floats can travel as MPI messages with this tag, to and from this rank.
  std::optional<MpiPlace> mpi = {};
  bool operator==(const Hello&) const = default;
};

// Why a connection is not wanted; sent before it is closed.
struct Refusal {
  std::string reason;
  bool retry_later = false;  // it may be wanted another time
  bool operator==(const Refusal&) const = default;
};

// Coordinator to shard: what to keep and how to learn.
struct Plan {
  uint32_t workers = 0;
  Step steps = 0;
  Step evaluate_every = 0;
  LearningRules learning;
  uint64_t full_samples = 0;          // of a step to which everybody contributes
  bool asynchronous = false;          // every gradient is applied as it comes; a step is a round
  std::optional<uint64_t> staleness;  // then: gradients between the fastest and the slowest
  bool partial_pull = false;  // workers go on without some blocks, which may then be behind them
  Duration push_grace{};      // a block that has enough gradients closes so much later
  Step first_step = 0;        // the run goes on from this version, which lies in `resume_from`
  std::string resume_from;    // empty: in memory, if `kept` says so
  std::optional<KeptVersion> kept = {};
  bool standby = false;        // every version is kept in memory, here and by a standby
  uint64_t incarnation = 0;    // that versions are kept under from here on
  Step checkpoint_every = 0;   // steps between checkpoints, besides one at the end; 0: none
  std::string checkpoint_dir;  // the folder that they are kept in
  std::vector<TensorSpec> tensors;
  BlockPlan blocks;
  bool operator==(const Plan&) const = default;
};

// Whether version `version` is to be kept as a checkpoint. The initial parameters are not.
inline bool is_checkpoint(Version version, Step every, Step steps) {
  return every > 0 && version > 0 && (version % every == 0 || version == steps);
}

// Coordinator to worker or evaluator: where the shards are and which block is whose.
struct Welcome {
  std::vector<std::string> shards;  // addresses, by shard
  BlockPlan blocks;
  Step steps = 0;
  Step evaluate_every = 0;
  bool asynchronous = false;  // workers take parameters as they are, block by block
  // To a worker: what it is one of.
  uint32_t workers = 0;
  uint32_t batch = 0;  // samples of one gradient
  uint64_t seed = 0;
  NumberType wire_dtype = NumberType::kFloat32;  // of gradients that are sent
  std::vector<SlowRule> slow = {};               // that slow it down on purpose
  bool partial_pull = false;                     // workers need not wait for all blocks
  double pull_share = 1.0;                       // then: for this share of them, and ...
  Duration pull_grace{};                         // ... so much longer
  Step first_step = 0;                           // that the run began with, or continued with
  bool operator==(const Welcome&) const = default;
};

// Coordinator to a process that asked for a place (Hello with kAnyIndex): what it needs to come
// back as a worker. The place is not kept for long.
struct PlaceOffer {
  WorkerId worker = 0;
  std::string job;  // as a job file
  bool operator==(const PlaceOffer&) const = default;
};

// Shard to worker or evaluator: both of your connections are here.
struct Connected {
  // Floats of the bulk lane travel as MPI messages, and this is the shard's rank.
  std::optional<uint32_t> mpi_rank = {};
  bool operator==(const Connected&) const = default;
};

// Shard to worker: send me your initial parameters of my blocks.
struct WantInitial {
  bool operator==(const WantInitial&) const = default;
};

// Shard or worker to coordinator: I am connected and have what step 0 needs.
struct Ready {
  bool operator==(const Ready&) const = default;
};

// Coordinator to shard: how long to wait in `step`. The first one also opens step 0.
struct Decision {
  Step step = 0;
  uint32_t cutoff = 0;          // gradients to wait for
  Duration time_limit{};        // since the step's opening on the shard's clock; zero: none
  uint32_t at_least = 1;        // gradients that are waited for even beyond the limit
  std::vector<WorkerId> alive;  // those who can still contribute
  // A shard tells of arrivals as they come (Arrived), so many at a time; 0: only at the close.
  uint32_t report_every = 0;
  double noise_scale = 0.0;  // of the gradients, in samples; 0: unknown
  bool operator==(const Decision&) const = default;
};

// Shard to coordinator: all my blocks have closed `step`.
struct StepClosed {
  struct Arrival {
    WorkerId worker = 0;
    Duration run_time{};
    Step step = 0;  // the step closed; or, in `late`, an earlier one
    bool operator==(const Arrival&) const = default;
  };
  struct Refused {
    WorkerId worker = 0;
    BlockId block = 0;
    bool operator==(const Refused&) const = default;
  };
  // A worker whose gradient was far larger than usual.
  struct Outlier {
    WorkerId worker = 0;
    BlockId block = 0;    // where it was worst
    uint32_t blocks = 0;  // of this shard's, in which it was
    double ratio = 0.0;   // how many times as large as usual, at worst
    bool used = false;    // made shorter
    bool operator==(const Outlier&) const = default;
  };
  Step step = 0;
  Duration elapsed{};             // from opening to the last block's close
  Duration closing{};             // from the last arrival needed to the parameters leaving
  Duration undecided{};           // of that, waiting for a decision
  Duration busy{};                // what the shard spent on summing, updating and answering
  std::vector<Arrival> arrivals;  // workers whose blocks here were all used
  // Gradients that have come whole since the last such message, too late to be used whole. One for
  // the step closed says that its worker did not take as long as the step; it is told again.
  std::vector<Arrival> late;
  std::vector<Refused> refused;
  uint64_t samples = 0;    // behind the update of the least served block
  uint32_t gradients = 0;  // free-running: those applied to the least served block in the round
  // Sums over this shard's blocks, see core/gradient_noise.h; NaN: fewer than two gradients.
  double signal = 0.0;
  double noise = 0.0;
  std::vector<BlockCount> block_counts;  // how many gradients this shard's blocks got
  uint64_t digest = 0;                   // after the last step: of this shard's parameters
  std::vector<Outlier> outliers = {};    // by worker
  bool operator==(const StepClosed&) const = default;
};

// Shard to coordinator: these have arrived whole in the open step since I last told.
struct Arrived {
  Step step = 0;
  std::vector<StepClosed::Arrival> arrivals;
  bool operator==(const Arrived&) const = default;
};

// Coordinator to worker: which samples of a step are yours, from step `from` on. A step has `total`
// positions in the stream of samples; yours are `count` of them, from `first` on.
struct Share {
  Step from = 0;
  uint64_t first = 0;
  uint32_t count = 0;
  uint64_t total = 0;
  bool operator==(const Share&) const = default;
};

// Worker to coordinator: I have thrown away my work on `step` and begun `resumed`.
struct Abandoned {
  Step step = 0;
  Step resumed = 0;
  Duration wasted{};
  bool operator==(const Abandoned&) const = default;
};

// Worker to coordinator: what my gradient was like.
struct StepReport {
  Step step = 0;
  uint32_t samples = 0;
  double loss = 0.0;
  uint32_t correct = 0;
  uint32_t predictions = 0;
  Duration compute{};
  std::optional<double> learning_rate = {};  // that it wants; absent: the run's
  // Where workers need not wait for all blocks: what the gradient was computed on.
  uint32_t blocks = 0;         // in all; 0: this is not told
  uint32_t fresh = 0;          // of those in the version of the step, or a newer one
  uint64_t staleness_sum = 0;  // of the others: steps that each is behind
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

// Worker to shard, before what it pushes: the learning rate from step `from` on.
struct LearningRate {
  Step from = 0;
  double rate = 0.0;
  bool operator==(const LearningRate&) const = default;
};

// Shard to coordinator: my part of the checkpoint of `version` is on the disk; or why it is not.
struct CheckpointSaved {
  Version version = 0;
  std::string file;  // its name in the checkpoint's folder
  uint64_t bytes = 0;
  uint32_t checksum = 0;
  Duration took{};
  CheckpointFailure failure = CheckpointFailure::kNone;
  int os_error = 0;   // kSystem: errno
  std::string error;  // then: what failed, in words
  bool operator==(const CheckpointSaved&) const = default;
};

// Coordinator to a process that could serve a shard: another does. Fetch what it makes from there,
// and keep it.
struct StandBy {
  std::string address;
  bool operator==(const StandBy&) const = default;
};

// Shard to its standby: a version of my blocks follows, their floats in frames (kReplica) in the
// order of `blocks` and of Floats.
struct Replica {
  enum Floats : uint32_t { kParameters, kMomentum, kSquares, kAverage };
  static constexpr uint32_t kFloatsMax = 4;
  struct Block {
    uint64_t offset = 0;  // see SavedBlock
    uint32_t length = 0;
    uint64_t updates = 0;
    double beta1_power = 1.0;
    double beta2_power = 1.0;
    uint32_t floats = 0;  // bit f: there are those
    std::vector<float> lengths = {};
    bool operator==(const Block&) const = default;
  };
  KeptVersion kept;
  Version least = 0;  // versions before this are not needed any more
  std::vector<Block> blocks;
  bool operator==(const Replica&) const = default;
};

// Standby to its shard: I have all of it.
struct Replicated {
  Version version = 0;
  bool operator==(const Replicated&) const = default;
};

// Evaluator, or a worker that evaluates, to coordinator.
struct Evaluated {
  Version version = 0;
  double loss = 0.0;
  double accuracy = 0.0;
  uint64_t samples = 0;
  bool operator==(const Evaluated&) const = default;
};

// Coordinator to everybody: the run is over. Somebody to the coordinator: I cannot go on; or, a
// worker that has completed what it was to do: I leave.
struct Farewell {
  RunOutcome outcome = RunOutcome::kCompleted;
  std::string reason;
  // The run goes on without what it has lost: whoever hears this should join it anew.
  bool rejoin = false;
  bool operator==(const Farewell&) const = default;
};

using Control = std::variant<Hello, Refusal, Plan, Welcome, WantInitial, Ready, Decision,
                             StepClosed, StepReport, Evaluated, Farewell, Arrived, Share, Abandoned,
                             PullShare, LearningRate, Challenge, CheckpointSaved, StandBy, Replica,
                             Replicated, PlaceOffer, Connected>;

std::string encode_control(const Control& message);

// Every count, size and id is checked against wire/limits.h.
Result<Control> decode_control(std::span<const std::byte> bytes);

}  // namespace drover
