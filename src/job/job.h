// Job: the complete description of a run before it starts, from a job file and flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/learning_rules.h"
#include "core/slow_rule.h"
#include "core/straggler_rule.h"
#include "core/target.h"
#include "core/task_spec.h"
#include "core/time.h"
#include "policy/catalogue.h"
#include "wire/number_type.h"

namespace drover {

enum class Transport : uint8_t {
  kAuto,  // memory shared between processes of one host, sockets where that is not possible
  kShm,
  kUnix,
  kTcp,
  kMpi,  // TCP, and blocks as MPI messages between processes that mpirun or srun has started
};

// In place of a share of blocks: the share is chosen from the response times of the shards.
inline constexpr double kPullAuto = 0.0;

// How long a step waits, and what happens to stragglers.
struct JobWaiting {
  std::string policy = "sync";  // a policy of policy/catalogue.h
  Objective objective = Objective::kThroughput;
  Step policy_warmup = 20;        // steps in which policies that learn wait for all workers
  uint32_t min_contributors = 1;  // minimum gradients per step, as far as workers are alive
  Duration max_wait{};            // per step with min_contributors gradients; zero: no limit
  double min_inclusion = 0.0;     // minimum share of steps that each worker contributes to
  bool live = false;              // decide again inside each step
  bool balance = false;           // mini-batches in proportion to speed
  double balance_least = 0.2;     // smallest share of a mini-batch for a worker
  double balance_most = 3.0;      // largest share of a mini-batch for a worker
  double pull = 1.0;              // share of the blocks that a worker waits for, or kPullAuto
  Duration pull_grace{};          // how much longer it waits for the other blocks
  Duration push_grace{};          // how much longer a block with enough gradients waits for others
  StragglerRule stragglers = StragglerRule::kStop;
  double probe = 0.0;  // share of stragglers that finish, to measure their run-time

  bool operator==(const JobWaiting&) const = default;
};

// The processes of a run, and their connections.
struct JobCluster {
  uint32_t workers = 4;
  uint32_t workers_max = 0;  // limit with workers that join later; 0: none join
  uint32_t shards = 2;
  std::vector<SlowRule> slow;
  Transport transport = Transport::kAuto;
  NumberType wire_dtype = NumberType::kFloat32;  // of gradients on sockets
  // The coordinator's address with Transport::kTcp; port 0: any free port.
  std::string listen = "127.0.0.1:0";
  std::string tls;            // folder with keys for Transport::kTcp; empty: no encryption
  bool insecure = false;      // allow an address that other hosts can reach, without TLS
  uint64_t window = 1 << 20;  // limit on bytes of gradients in flight to one shard
  bool supervise = false;     // restart killed processes, and continue from the newest checkpoint
  bool standby = false;       // with a standby for each shard, to lose no step

  bool operator==(const JobCluster&) const = default;
};

// Evaluations and files of a run.
struct JobRecord {
  Step evaluate_every = 0;        // steps between evaluations; 0: only at the end
  std::optional<Target> stop_at;  // the run ends when an evaluation reaches it
  std::string run_file;           // empty: runs/<time>-<model>-<data>.db
  std::string save_model;         // empty: do not save the final parameters
  std::string checkpoint;         // a folder for checkpoints; empty: none are written
  Step checkpoint_every = 200;    // steps between checkpoints; there is one at the end too
  uint32_t keep = 3;              // number of checkpoints to keep
  std::string resume;             // folder of one or several checkpoints to continue from

  bool operator==(const JobRecord&) const = default;
};

struct Job {
  TaskSpec task;  // task.seed is the run's seed: all randomness follows from it
  Step steps = 1000;
  uint32_t batch = 64;  // samples of one worker in one step
  LearningRules learning;
  JobWaiting waiting;
  JobCluster cluster;
  JobRecord record;

  bool operator==(const Job&) const = default;
};

}  // namespace drover
