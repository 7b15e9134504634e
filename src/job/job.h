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
  std::string policy = "sync";  // as policy/catalogue.h reads it
  Objective objective = Objective::kThroughput;
  Step policy_warmup = 20;        // steps in which policies that learn wait for all workers
  uint32_t min_contributors = 1;  // gradients in every step, as far as workers are alive
  Duration max_wait{};            // per step, if min_contributors are there; zero: no limit
  double min_inclusion = 0.0;     // share of steps each worker should be part of; 0: any
  bool live = false;              // decide again inside each step
  bool balance = false;           // mini-batches in proportion to speed
  double balance_least = 0.2;     // of a mini-batch, that every worker gets
  double balance_most = 3.0;      // of a mini-batch, that no worker gets more than
  double pull = 1.0;              // share of the blocks that a worker waits for; kPullAuto: chosen
  Duration pull_grace{};          // how much longer it waits for the others
  Duration push_grace{};  // how much longer a block that has enough gradients waits for others
  StragglerRule stragglers = StragglerRule::kStop;
  double probe = 0.0;  // share of stragglers that finish, to measure their run-time

  bool operator==(const JobWaiting&) const = default;
};

// The processes of a run, and how they reach each other.
struct JobCluster {
  uint32_t workers = 4;
  uint32_t workers_max = 0;  // limit with workers that join later; 0: none join
  uint32_t shards = 2;
  std::vector<SlowRule> slow;
  Transport transport = Transport::kAuto;
  NumberType wire_dtype = NumberType::kFloat32;  // of gradients, where they are sent
  std::string listen =
      "127.0.0.1:0";      // the coordinator's address with Transport::kTcp; port 0: any free one
  std::string tls;        // a folder with keys for Transport::kTcp; empty: it is not encrypted
  bool insecure = false;  // listen where others reach it without that
  uint64_t window = 1 << 20;  // bytes of gradients under way to one shard at once, at most
  bool supervise = false;     // restart killed processes, and continue from the newest checkpoint
  bool standby = false;       // and keep every version twice in memory, to continue without one

  bool operator==(const JobCluster&) const = default;
};

// What is measured and kept of a run.
struct JobRecord {
  Step evaluate_every = 0;        // steps between evaluations; 0: only at the end
  std::optional<Target> stop_at;  // the run ends when an evaluation reaches it
  std::string run_file;           // empty: runs/<time>-<model>-<data>.db
  std::string save_model;         // empty: do not save the final parameters
  std::string checkpoint;         // a folder for checkpoints; empty: none are written
  Step checkpoint_every = 200;    // steps; and there is one at the end
  uint32_t keep = 3;              // checkpoints
  std::string resume;             // continue from a checkpoint: its folder, or one of several

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
