// CoordinatorSettings: what a coordinator is started with.
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

// Blocks that a worker waits for before it begins a step.
struct PullSettings {
  double share = 1.0;
  bool choose = false;  // the share, from what is seen of shards' answers
  Step warmup = 20;     // then: steps in which all are waited for
  Duration grace{};     // how much longer the others are waited for
  bool is_partial() const { return choose || share < 1.0; }
};

// What only workers need to know.
struct WorkerOptions {
  NumberType wire_dtype = NumberType::kFloat32;
  std::vector<SlowRule> slow = {};
  std::string job = {};  // as a job file, for workers that join; empty: no other process can do it
};

// A run continues from a checkpoint, or from what its shards and their standbys keep in memory.
struct ResumeFrom {
  Version step = 0;                 // so many are done
  std::string folder;               // that shards read it from; empty: it is kept in memory
  std::vector<TensorSpec> tensors;  // what was learned, and ...
  SettingTexts settings;            // ... how
  SavedNoise noise;
  std::optional<KeptVersion> kept = {};  // in memory, by processes for ...
  std::set<ShardId> keepers = {};        // ... these
};

struct CoordinatorSettings {
  uint32_t workers = 1;                      // indices that workers may have
  std::optional<uint32_t> workers_at_start;  // the others may come later; absent: all
  uint32_t shards = 1;
  Step steps = 1;
  bool evaluator = true;  // one takes part
  Step evaluate_every = 0;
  std::optional<Target> stop_at;  // the run ends when an evaluation reaches it
  LearningRules learning;
  bool workers_bring_model = false;  // and say how to learn it (Hello::learning)
  WorkerOptions worker_options;
  uint64_t full_samples = 0;               // of a step to which all workers contribute
  uint32_t batch = 0;                      // samples of one gradient; 0: unknown
  DecisionLimits limits;                   // on whatever the policy says
  std::optional<BalanceSettings> balance;  // deal out work by speed
  StragglerRule stragglers = StragglerRule::kStop;
  double probe = 0.0;                       // share of stragglers that finish all the same
  uint64_t seed = 1;                        // decides which
  std::optional<FreeRunning> free_running;  // instead of a policy: workers do not wait for a step
  PullSettings pull;                        // how many blocks workers wait for
  Duration push_grace{};                    // see Plan
  uint32_t block_floats = kBlockFloats;     // of the largest block, if shards have several such
  Step checkpoint_every = 0;                // steps, besides one at the end; 0: none
  std::string checkpoint_dir;
  std::optional<ResumeFrom> resume;
  // Lost processes come back: a loss that the run cannot bear makes it restart
  // (Coordinator::restarts()).
  bool recovers = false;
  // The loss of a worker of the start ends the run, as over MPI, which does not outlive a rank.
  bool workers_indispensable = false;
  Duration before{};         // since the run began, in earlier incarnations of the coordinator
  bool standby = false;      // each shard has one
  uint64_t incarnation = 0;  // of the coordinator; unique within the run
  Duration join_timeout = std::chrono::seconds(60);  // a process that joins later is left out
  // The same of workers that should come back to a run that restarts, if others have.
  std::optional<Duration> return_timeout;

  uint32_t at_start() const { return workers_at_start.value_or(workers); }
};

}  // namespace drover
