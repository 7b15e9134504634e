// Scenario: the description of a simulated cluster: the run-times of its workers, its network, and
// its faults. The job that it trains is described by job/job.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/time.h"
#include "store/trace.h"
#include "wire/control.h"

namespace drover {

// Selects workers: those of a node, a range of numbers, or (with neither) all workers.
struct WorkerSelector {
  std::optional<uint32_t> node;
  std::optional<std::pair<WorkerId, WorkerId>> workers;  // first and last
};

// When an event happens: when a step opens, or at a time since the start.
struct Trigger {
  std::optional<Step> step;
  Duration at{};  // if there is no step
};

// Steps from `first` up to, not including, `end`.
struct StepSpan {
  Step first = 0;
  Step end = ~Step{0};
  bool contains(Step step) const { return first <= step && step < end; }
};

enum class RunTimeKind : uint8_t {
  kConstant,            // mean
  kNormal,              // mean, deviation; never below a hundredth of the mean
  kLognormal,           // mean, deviation (of the run-time, not of its logarithm)
  kShiftedExponential,  // shift + an exponential time of mean `mean`
  kPareto,              // at least `shift`, P(x > t) = (shift / t)^shape
  kTrace,               // recorded; repeated from the beginning at its end
};

struct RunTimeLaw {
  RunTimeKind kind = RunTimeKind::kConstant;
  double mean = 1.0;       // seconds, as below
  double deviation = 0.0;  // standard
  double shift = 0.0;
  double shape = 2.0;
  std::shared_ptr<const Trace> trace;
};

// A law for some workers. If several rules match a worker, the last one applies.
struct RunTimeRule {
  WorkerSelector selector;
  RunTimeLaw law;
};

// The selected workers run `factor` times slower in these steps.
struct SlowSpell {
  WorkerSelector selector;
  StepSpan steps;
  double factor = 2.0;
};

// In a share of its steps, drawn independently, a worker takes longer: by a factor, and by a
// normally distributed delay (never below zero).
struct Straggling {
  WorkerSelector selector;
  StepSpan steps;
  double share = 0.01;
  double factor = 1.0;
  double delay_mean = 0.0;
  double delay_deviation = 0.0;
};

// Markov-modulated slowdown: in each step a normal worker becomes slow with probability `enter`,
// and a slow one recovers with probability `leave`. A slow worker runs `factor` times slower.
struct Regime {
  WorkerSelector selector;
  bool by_node = false;  // all workers of a node become slow together
  double enter = 0.01;
  double leave = 0.1;
  double factor = 2.0;
};

// Run-times grow (or shrink) by this share with every step: (1 + per_step)^step.
struct Drift {
  WorkerSelector selector;
  double per_step = 0.0;
};

// A link carries streams, like TCP: faults of packets delay the stream. A lost packet is sent again
// after `resend`, and later packets wait for it. A reordered packet delays the stream by another
// latency. A duplicate takes bandwidth, and is discarded.
struct LinkLaw {
  Duration latency = std::chrono::microseconds(100);
  Duration jitter{};              // mean of an additional exponential delay
  double bytes_per_second = 0.0;  // of each process; 0: no limit
  double loss = 0.0;              // share of frames
  double duplication = 0.0;
  double reordering = 0.0;
  Duration resend = std::chrono::milliseconds(200);
};

// The links of some workers. If several rules match a link, the last one applies.
struct LinkRule {
  WorkerSelector selector;
  LinkLaw law;
};

// A share of a shard's answers to pulls are late, each with all its blocks.
struct SlowShard {
  std::optional<ShardId> shard;  // absent: all of them
  double share = 1.0;
  Duration delay{};
};

// The process of a shard hangs for a while: messages to it wait.
struct Stall {
  ShardId shard = 0;
  Trigger when;
  Duration length{};
};

// A share of the coordinator's messages are late.
struct SlowCoordinator {
  double share = 1.0;
  Duration delay{};
};

struct Death {
  WorkerId worker = 0;
  Trigger when;
  bool loses_messages = false;  // messages under way are lost, as when a host dies
};

// The process of a shard, a standby or the coordinator (index 0) dies. It is restarted `back` later
// if the run recovers.
struct ServerDeath {
  Role role = Role::kShard;
  ShardId index = 0;
  Trigger when;
  Duration back = std::chrono::milliseconds(100);
  bool loses_messages = false;  // see Death
};

// A shard reports twice that it has closed this step, which violates the protocol.
struct RepeatedClosing {
  ShardId shard = 0;
  Step step = 0;
};

// A script leaves the run before this step: because it is done, or with an exception.
struct Leave {
  WorkerId worker = 0;
  Step before = 0;
  bool fails = false;
};

// The disk for checkpoints: the mean time of writing a shard's part or the manifest, the mean time
// of reading a shard's part, and the share of writes that fail.
struct DiskLaw {
  Duration write = std::chrono::milliseconds(50);
  Duration read = std::chrono::milliseconds(50);
  double failures = 0.0;
};

// A worker joins for the first time, or again after its death.
struct Join {
  WorkerId worker = 0;
  Trigger when;
};

// These workers cannot be reached. Messages wait, as with TCP retransmission.
struct Partition {
  WorkerSelector selector;
  Trigger when;
  Duration length{};
};

// The worker's gradient of this step has NaN.
struct CorruptGradient {
  WorkerId worker = 0;
  Step step = 0;
};

// From this step on the worker's gradients are multiplied by `factor`.
struct ByzantineFault {
  WorkerId worker = 0;
  double factor = 100.0;
  std::optional<Step> step;
};

struct Scenario {
  // Layers of the model that the run-times belong to. A worker notices a stop between two layers.
  // 0: one layer for each tensor of the model that is trained.
  uint32_t layers = 0;
  std::vector<uint32_t> nodes;  // workers per node, in order; empty: all on one node
  std::vector<RunTimeRule> run_times;
  std::vector<SlowSpell> slow;
  std::vector<Straggling> straggling;
  std::vector<Regime> regimes;
  std::vector<Drift> drifts;
  std::vector<LinkRule> links;
  std::vector<SlowShard> slow_shards;
  std::optional<SlowCoordinator> slow_coordinator;
  std::vector<Death> deaths;
  std::vector<ServerDeath> server_deaths;
  std::vector<RepeatedClosing> repeated_closings;
  std::vector<Leave> leaves;
  DiskLaw disk;
  std::vector<Join> joins;
  std::vector<Partition> partitions;
  std::vector<Stall> stalls;
  std::vector<CorruptGradient> corrupt_gradients;
  std::vector<ByzantineFault> byzantine_faults;

  uint32_t node_of(WorkerId worker) const;
  bool concerns(const WorkerSelector& selector, WorkerId worker) const;
  // Whether the worker joins after the start. The run does not wait for it at the start.
  bool joins_later(WorkerId worker) const;
};

// The host name of a node, such as "node2".
std::string node_name(uint32_t node);

}  // namespace drover
