// Simulation: a whole run in virtual time. The coordinator, shards and workers are the same state
// machines that run live; gradients are real; clock, network and faults are the scenario's. A run
// that restarts goes through several incarnations of its coordinator, as a live one does.
//
// Equal settings give equal runs, event by event.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordinator.h"
#include "core/result.h"
#include "core/run_record.h"
#include "policy/policy.h"
#include "shard/kept_parts.h"
#include "sim/event_queue.h"
#include "sim/network.h"
#include "sim/processes.h"
#include "sim/run_times.h"
#include "sim/scenario.h"
#include "sim/simulated_coordinator.h"
#include "sim/simulated_disk.h"
#include "sim/simulated_evaluator.h"
#include "sim/simulated_server.h"
#include "sim/simulated_worker.h"
#include "sim/standby_cover.h"
#include "sim/witness.h"
#include "worker/task.h"

namespace drover {

struct SimulationSettings {
  // With `recovers` whatever is lost comes back, and the run restarts where it must.
  CoordinatorSettings coordinator;
  uint32_t batch = 1;
  bool own_parts = false;         // see SampleShare
  std::vector<uint32_t> batches;  // by worker, where they differ; else `batch` for all
  size_t window_bytes = Shard::kWindowBytes;
  uint64_t seed = 1;
  NumberType number_type = NumberType::kFloat32;  // of gradients under way
  std::optional<SimulatedScripts> scripts = {};   // workers bring their model
  Scenario scenario;

  uint32_t batch_of(WorkerId worker) const { return batches.empty() ? batch : batches[worker]; }
};

class Simulation {
 public:
  // Makes the policy of each incarnation of the coordinator; null where there is none.
  using MakePolicy = std::function<std::unique_ptr<Policy>()>;

  // Everything handed in must outlive this. `witness` may be null.
  Simulation(const SimulationSettings& settings, MakePolicy make_policy, Task& task,
             std::vector<RunObserver*> observers, Witness* witness);

  // To the end of the run. Calls `pulse` now and then; if it returns false the run is interrupted.
  // An Error is a bug of ours: a breach of the protocol, or a run in which nothing happens any
  // more. If there is a witness it also gets to see what was still under way at the end.
  Result<RunEnd> run(const std::function<bool()>& pulse);

  // Called when the run restarts: steps from `version` on are taken back.
  void on_restart(std::function<Status(Version version)> call) { restarted_ = std::move(call); }

  TimePoint now() const { return time_.now(); }

 private:
  // --- the run's incarnations
  void begin_incarnation(const CoordinatorSettings& settings);
  void note_restart();
  void restart(const std::optional<ResumeFrom>& committed);
  void lose_coordinator(const ServerDeath& death);
  void end_run(const RunEnd& end);
  bool is_over() const;
  void tick(uint64_t incarnation);

  // --- processes that come and go
  void plan_faults();
  void start_server(Party self);
  void start_evaluator();
  void start_worker(WorkerId id);
  SimulatedWorkerSettings worker_settings(WorkerId id);
  Hello hello_of(Party who);
  void say_hello(Party who, uint64_t number, uint32_t tries);
  bool knock(Party who, uint64_t number);
  void connect(Party client, uint64_t number, Party server);
  void kill(Party who, bool loses_messages);
  void kill_server(const ServerDeath& death);
  void note_loss(Party who);
  void retire(Party who);
  void rejoin(Party who);
  void close_connections(Party who, uint64_t number);
  void plan_close(Party server, Party client, Lane lane, uint64_t server_number,
                  uint64_t client_number, bool server_ended);
  void on_client_lost(Party server, Party client);
  void on_server_lost(Party server, Party client);
  void at(const Moment& moment, std::function<void()> happen);

  template <typename Work>
  void with_coordinator(Work&& work);
  void carry_out(CoordinatorOutput out);
  void record(const Happening& happening);
  void check(const Status& recorded);
  void breach(const std::string& what);
  void refuse(Party who, const Status& status);

  // --- messages
  Party server_of(ShardId shard) const;
  SimulatedServer* find_server(Party who) const;
  bool is_watched(Party who, uint64_t number) const;
  Party seen_as(Party who) const;
  void send_all(Party from, Outbox out);
  void send(Party from, Outgoing message);
  Duration extra_delay(Party from, Party to, const FrameHeader& header);
  SharedBuffer copy_gradient(Party to, FloatSlice& slice, NumberType type);
  void deliver(Party from, uint64_t from_number, Party to, uint64_t to_number,
               const Outgoing& message, SharedBuffer floats);
  void deliver_to_coordinator(Party from, const Outgoing& message);
  void deliver_to_server(Party to, Party from, const Outgoing& message, SharedBuffer floats);
  Status from_coordinator(SimulatedServer& server, Party self, const Control& message);
  Status from_standby(SimulatedServer& server, Party self, const Outgoing& message);
  static Status to_standby(SimulatedServer& server, const Outgoing& message);
  void deliver_to_member(Party to, Party from, const Outgoing& message);
  void order_member(Party to, const Control& message);
  Load load() const;
  void finish_what_is_under_way();

  const SimulationSettings settings_;
  const MakePolicy make_policy_;
  Task& task_;
  const std::vector<RunObserver*> observers_;
  Witness* const witness_;
  std::function<Status(Version)> restarted_;
  EventQueue time_;
  RunTimes run_times_;
  Network network_;
  SimulatedDisk disk_;
  Processes processes_;
  uint64_t incarnation_ = 0;  // of the coordinator
  std::unique_ptr<SimulatedCoordinator> coordinator_;
  struct Server {
    KeptParts kept;
    std::unique_ptr<SimulatedServer> process;
  };
  std::map<Party, Server> servers_;
  std::map<ShardId, Role> serving_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
  std::unique_ptr<SimulatedEvaluator> evaluator_;
  // Processes that are over: what was planned for them still finds them.
  std::vector<std::shared_ptr<void>> retired_;
  std::multimap<Step, std::function<void()>> at_step_;
  std::vector<RepeatedClosing> repeated_closings_;  // that are still to come
  uint64_t coordinator_said_ = 0;                   // messages: the key of their delays
  uint32_t server_losses_ = 0;
  StandbyCover cover_;
  bool covered_ = false;  // the last one, until the run has continued: its standby had everything
  bool training_ = false;
  std::vector<uint16_t> halves_;  // a gradient on its way
  std::string failure_;           // to record the run
  std::string breach_;
  std::optional<RunEnd> end_;
};

}  // namespace drover
