// CoordinatorSettings: the settings that a coordinator starts with.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/checkpoint_part.h"
#include "core/layout.h"
#include "core/learning_rules.h"
#include "core/straggler_rule.h"
#include "core/target.h"
#include "core/time.h"
#include "core/training.h"
#include "policy/catalogue.h"
#include "policy/decider.h"
#include "wire/control.h"

namespace drover {

// The share of the blocks that a worker waits for before it begins a step.
struct PullSettings {
  double share = 1.0;
  bool choose = false;  // chooses the share from the observed response times of shards
  Step warmup = 20;     // if `choose`: the first steps, in which workers wait for all blocks
  Duration grace{};     // how much longer a worker waits for the other blocks
  // Whether workers may begin a step without some blocks.
  bool is_partial() const { return choose || share < 1.0; }
};

// Settings that the coordinator passes on to workers.
struct WorkerOptions {
  NumberType wire_dtype = NumberType::kFloat32;
  std::vector<SlowRule> slow = {};
  std::string job = {};  // the job file, for workers that join later; empty: none can
};

// The state that a run continues from: a checkpoint, or versions that shards and their standbys
// keep in memory.
struct ResumeFrom {
  Version step = 0;                 // the first step to run
  std::string folder;               // of the checkpoint; empty: the state is in memory
  std::vector<TensorSpec> tensors;  // of the model
  SettingTexts settings;            // of learning
  SavedNoise noise;
  std::optional<KeptVersion> kept = {};  // the version in memory
  std::set<ShardId> keepers = {};        // shards of which a process keeps its part in memory
};

struct CoordinatorSettings {
  uint32_t workers = 1;                      // the number of worker indices
  std::optional<uint32_t> workers_at_start;  // the others may join later; absent: all
  uint32_t shards = 1;
  Step steps = 1;
  bool evaluator = true;  // the run has an evaluator
  Step evaluate_every = 0;
  std::optional<Target> stop_at;  // the run ends when an evaluation reaches it
  LearningRules learning;
  bool workers_bring_model = false;  // workers send the model and learning rules (Hello::learning)
  WorkerOptions worker_options;
  uint64_t full_samples = 0;               // samples of a step to which all workers contribute
  uint32_t batch = 0;                      // samples of one gradient; 0: unknown
  DecisionLimits limits;                   // bounds on the policy's choices
  std::optional<BalanceSettings> balance;  // absent: all workers compute equally many samples
  StragglerRule stragglers = StragglerRule::kStop;
  double probe = 0.0;                        // share of stragglers that may finish despite kStop
  uint64_t seed = 1;                         // selects them
  std::optional<Asynchronous> asynchronous;  // the run is asynchronous and has no policy
  PullSettings pull;
  Duration push_grace{};                 // see Plan
  uint32_t block_floats = kBlockFloats;  // see BlockMap
  Step checkpoint_every = 0;             // steps, besides the one at the end; 0: no checkpoints
  std::string checkpoint_dir;
  std::optional<ResumeFrom> resume;
  // Lost processes are restarted. If the run cannot continue without one, the run restarts
  // (Coordinator::restarts()).
  bool recovers = false;
  // The loss of a worker of the start ends the run. So it is over MPI, which does not survive the
  // loss of a rank.
  bool workers_indispensable = false;
  Duration before{};         // the duration of earlier incarnations of the coordinator
  bool standby = false;      // each shard has one
  uint64_t incarnation = 0;  // of the coordinator; unique within the run
  Duration join_timeout = std::chrono::seconds(60);  // training begins without later workers
  // After a restart: how long the first ready worker waits for others. Absent: join_timeout.
  std::optional<Duration> return_timeout;

  uint32_t at_start() const { return workers_at_start.value_or(workers); }
};

}  // namespace drover
