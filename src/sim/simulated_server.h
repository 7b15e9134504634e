// SimulatedServer: the process of a shard or of its standby, in virtual time. It drives a
// ShardServer.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "shard/kept_parts.h"
#include "shard/replication.h"
#include "shard/shard_server.h"
#include "sim/event_queue.h"
#include "sim/network.h"
#include "sim/simulated_disk.h"

namespace drover {

class SimulatedServer {
 public:
  using Send = std::function<void(Outbox)>;

  // REQUIRES: the references outlive this object. `said` is called with every message for the
  // coordinator when the shard produces it, which may be long before it is sent.
  SimulatedServer(Party self, KeptParts& kept, size_t window_bytes, EventQueue& time,
                  SimulatedDisk& disk, Send send, std::function<void(const Outgoing&)> said);

  bool has_plan() const { return machine_.shard().has_plan(); }
  BufferPool& pool() { return machine_.shard().pool(); }
  size_t pending() const { return machine_.shard().pending(); }

  // --- from the coordinator
  void on_plan(const Plan& plan);
  Status on_decision(const Decision& decision);
  Status on_length(const RunLength& length);
  // --- from workers and the evaluator
  void on_joined(WorkerId worker);
  void on_lost(WorkerId worker);
  Status on_frame(WorkerId worker, const FrameHeader& header, ConstBuffer payload);
  Status on_rate(WorkerId worker, const LearningRate& rate) {
    return machine_.shard().on_rate(worker, rate);
  }
  void on_release(const Release& release);
  // --- between a shard and its standby
  Status on_standby(ShardId theirs);
  void on_standby_lost();
  Status on_replicated(const Replicated& replicated);
  Status on_replica(const Replica& replica);
  Status on_replica_floats(const FrameHeader& header, ConstBuffer floats);

  // The process hangs until then: messages to it wait.
  void hang_until(TimePoint until);
  bool hangs() const { return stalled_until_ > TimePoint{} && time_.now() <= stalled_until_; }
  TimePoint stalled_until() const { return stalled_until_; }

  // The process has stopped, or no longer takes part in the run.
  void on_over() { over_ = true; }
  bool is_over() const { return over_; }

 private:
  template <typename Work>
  void work(Work&& machine);
  void send_said(Outbox said);
  void plan_wake();
  void save(CheckpointPart part);
  void write(CheckpointPart part);

  const Party self_;
  EventQueue& time_;
  SimulatedDisk& disk_;
  const Send send_;
  const std::function<void(const Outgoing&)> said_;
  ShardServer machine_;
  ReplicaIntake intake_;
  TimePoint wake_{};  // the planned wake-up
  TimePoint stalled_until_{};
  bool writing_ = false;
  std::optional<CheckpointPart> waiting_;  // to be written next
  bool over_ = false;
};

}  // namespace drover
