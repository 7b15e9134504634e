// Simulation: a whole run in virtual time. The coordinator, shards and workers are the same state
// machines that run live; gradients are real; clock, network and faults are the scenario's.
//
// Equal settings give equal runs, event by event.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/run_record.h"
#include "policy/policy.h"
#include "server/coordinator.h"
#include "server/shard.h"
#include "sim/event_queue.h"
#include "sim/network.h"
#include "sim/run_times.h"
#include "sim/scenario.h"
#include "sim/simulated_evaluator.h"
#include "sim/simulated_worker.h"
#include "sim/witness.h"
#include "worker/task.h"

namespace drover {

struct SimulationSettings {
  CoordinatorSettings coordinator;
  uint32_t batch = 1;
  bool own_parts = false;         // see SampleShare
  std::vector<uint32_t> batches;  // by worker, where they differ; else `batch` for all
  size_t window_bytes = Shard::kWindowBytes;
  uint64_t seed = 1;
  NumberType number_type = NumberType::kFloat32;  // of gradients under way
  Scenario scenario;

  uint32_t batch_of(WorkerId worker) const { return batches.empty() ? batch : batches[worker]; }
};

class Simulation {
 public:
  // Everything handed in must outlive this. `witness` may be null.
  Simulation(const SimulationSettings& settings, std::unique_ptr<Policy> policy, Task& task,
             std::vector<RunObserver*> observers, Witness* witness);

  // To the end of the run. Calls `pulse` now and then; if it returns false the run is interrupted.
  // An Error is a bug of ours: a breach of the protocol, or a run in which nothing happens any
  // more. If there is a witness it also gets to see what was still under way at the end.
  Result<RunEnd> run(const std::function<bool()>& pulse);

  TimePoint now() const { return time_.now(); }

 private:
  // A worker process. One that dies and comes back is another process with the same number.
  struct Life {
    uint64_t number = 0;  // of the process; 0: there has been none
    bool alive = false;
    std::unique_ptr<SimulatedWorker> worker;
    std::set<uint64_t> silenced;  // processes whose messages under way are lost
  };

  void tick();
  void plan_faults();
  void hang(const Stall& stall);
  void start_worker(WorkerId id);
  void say_hello(WorkerId id, uint64_t life, uint32_t tries);
  void connect(Party end, uint64_t life, ShardId shard);
  void kill(const Death& death);
  void close_connections(WorkerId id, uint64_t life);
  void at(const Moment& moment, std::function<void()> happen);

  template <typename Work>
  void with_coordinator(Work&& work);
  template <typename Work>
  void with_shard(ShardId id, Work&& work);
  void plan_wake(ShardId id);
  bool hangs(ShardId id) const { return time_.now() <= stalls_[id] && stalls_[id] > TimePoint{}; }
  void plan_review();
  void record(const Happening& happening);
  void check(const Status& recorded);
  void breach(const std::string& what);

  uint64_t life_of(Party end) const;
  uint64_t life_behind(Party from, Party to) const;
  bool is_current(Party end, uint64_t life) const;
  void send_all(Party from, Outbox out);
  void send(Party from, Outgoing message);
  void deliver(Party from, uint64_t from_life, uint64_t to_life, const Outgoing& message,
               SharedBuffer floats);
  void deliver_to_shard(ShardId id, Party from, const Outgoing& message, SharedBuffer floats);
  void deliver_to_member(Party to, Party from, const Outgoing& message);
  Load load() const;
  void finish_what_is_under_way();

  const SimulationSettings settings_;
  Task& task_;
  const std::vector<RunObserver*> observers_;
  Witness* const witness_;
  EventQueue time_;
  RunTimes run_times_;
  Network network_;
  Coordinator coordinator_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<TimePoint> wakes_;   // by shard: when it was last asked to be woken
  std::vector<TimePoint> stalls_;  // by shard: until when it hangs
  TimePoint review_at_{};          // when the coordinator was last asked to be woken
  std::vector<Life> lives_;        // by worker
  std::vector<std::unique_ptr<SimulatedWorker>> retired_;
  std::unique_ptr<SimulatedEvaluator> evaluator_;
  // Who is connected where, by the number of its process: workers to the coordinator and to shards.
  std::map<std::pair<Party, WorkerId>, uint64_t> connected_;
  std::multimap<Step, std::function<void()>> at_step_;
  uint64_t coordinator_said_ = 0;  // messages: the key of their chances
  bool training_ = false;
  std::vector<uint16_t> halves_;  // a gradient on its way
  std::string failure_;           // to record the run
  std::string breach_;
  RunEnd end_;
};

}  // namespace drover
