// Scenario: a cluster that does not exist, as values: how fast its workers are, how its network
// behaves, and what goes wrong when. The job it trains is described apart (job/job.h).
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

// Some of the workers: those of a node, a range of numbers, or (with neither) everybody.
struct Whom {
  std::optional<uint32_t> node;
  std::optional<std::pair<WorkerId, WorkerId>> workers;  // first and last
};

// When something happens: when a step opens, or at a time since the start.
struct Moment {
  std::optional<Step> step;
  Duration at{};  // without a step
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
  kTrace,               // recorded; begins again at its end
};

struct RunTimeLaw {
  RunTimeKind kind = RunTimeKind::kConstant;
  double mean = 1.0;       // seconds, as below
  double deviation = 0.0;  // standard
  double shift = 0.0;
  double shape = 2.0;
  std::shared_ptr<const Trace> trace;
};

// A law for some workers; of several that fit, the last counts.
struct RunTimeRule {
  Whom whom;
  RunTimeLaw law;
};

// Runs `factor` times slower in these steps. A whole node's workers slow down together.
struct SlowSpell {
  Whom whom;
  StepSpan steps;
  double factor = 2.0;
};

// In a share of its steps, drawn independently, a worker takes longer: by a factor, and by a
// normally distributed delay (never below zero).
struct Straggling {
  Whom whom;
  StepSpan steps;
  double share = 0.01;
  double factor = 1.0;
  double delay_mean = 0.0;
  double delay_deviation = 0.0;
};

// Markov-modulated: in every step a healthy one falls ill with probability `enter`, an ill one
// recovers with probability `leave`; who is ill runs `factor` times slower.
struct Regime {
  Whom whom;
  bool by_node = false;  // a node falls ill as a whole
  double enter = 0.01;
  double leave = 0.1;
  double factor = 2.0;
};

// Run-times grow (or shrink) by this share with every step: (1 + per_step)^step.
struct Drift {
  Whom whom;
  double per_step = 0.0;
};

// A link carries streams, as TCP does: what the packets suffer, the stream shows as delay. A lost
// packet is sent again after `resend` and everything behind it waits; one that is overtaken
// (reordered) holds up the stream for another latency; a duplicate costs bandwidth and is thrown
// away.
struct LinkLaw {
  Duration latency = std::chrono::microseconds(100);
  Duration jitter{};              // mean of an exponential time on top
  double bytes_per_second = 0.0;  // of each end; 0: no limit
  double loss = 0.0;              // share of frames
  double duplication = 0.0;
  double reordering = 0.0;
  Duration resend = std::chrono::milliseconds(200);
};

// Links of some workers; of several that fit, the last counts.
struct LinkRule {
  Whom whom;
  LinkLaw law;
};

// A share of a shard's answers to pulls, each with all its blocks, come late.
struct SlowShard {
  std::optional<ShardId> shard;  // absent: all of them
  double share = 1.0;
  Duration delay{};
};

// The process of a shard hangs for a while: whatever is sent to it waits.
struct Stall {
  ShardId shard = 0;
  Moment when;
  Duration length{};
};

// A share of what the coordinator says comes late.
struct SlowCoordinator {
  double share = 1.0;
  Duration delay{};
};

struct Death {
  WorkerId worker = 0;
  Moment when;
  bool loses_messages = false;  // what is under way is lost too, as when a host dies
};

// A server's process dies: a shard's, a standby's or the coordinator's (whose index is 0). Where
// the run recovers it is restarted `back` later.
struct ServerDeath {
  Role role = Role::kShard;
  ShardId index = 0;
  Moment when;
  Duration back = std::chrono::milliseconds(100);
  bool loses_messages = false;  // as of Death
};

// A shard sends the news that it has closed this step twice, which the protocol does not allow.
struct RepeatedClosing {
  ShardId shard = 0;
  Step step = 0;
};

// A script stops before this step: because it has done what it was to do, or with an exception.
struct Leave {
  WorkerId worker = 0;
  Step before = 0;
  bool fails = false;
};

// The disk that checkpoints are kept on: mean times of a write (a shard's part, or the manifest)
// and of reading a shard's part, and the share of writes that fail.
struct DiskLaw {
  Duration write = std::chrono::milliseconds(50);
  Duration read = std::chrono::milliseconds(50);
  double failures = 0.0;
};

// Comes for the first time, or again after its death.
struct Join {
  WorkerId worker = 0;
  Moment when;
};

// These workers cannot be reached; what is sent waits, as TCP would keep trying.
struct Partition {
  Whom whom;
  Moment when;
  Duration length{};
};

// Its gradient has NaN in this step.
struct Poison {
  WorkerId worker = 0;
  Step step = 0;
};

// From this step on its gradients are so many times what they should be.
struct Lie {
  WorkerId worker = 0;
  double factor = 100.0;
  std::optional<Step> step;
};

struct Scenario {
  // Of the network whose run-times these are; a worker told to stop notices between two of them.
  // 0: as many as the model that is trained has tensors.
  uint32_t layers = 0;
  std::vector<uint32_t> nodes;  // workers on each, in order; empty: all on one
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
  std::vector<Poison> poisons;
  std::vector<Lie> lies;

  uint32_t node_of(WorkerId worker) const;
  bool concerns(const Whom& whom, WorkerId worker) const;
  // Workers that come later are not waited for at the start.
  bool joins_later(WorkerId worker) const;
};

// "node2": the name of the host a worker sits on.
std::string node_name(uint32_t node);

}  // namespace drover
