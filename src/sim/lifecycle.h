// Lifecycle: starts and ends the processes of a simulated run other than the coordinator, as its
// launcher would.
#pragma once

#include <functional>
#include <utility>

#include "sim/connections.h"
#include "sim/run_times.h"
#include "sim/simulated_world.h"
#include "sim/simulation_record.h"
#include "worker/task.h"

namespace drover {

class Lifecycle {
 public:
  struct Handlers {
    std::function<void(Party from, Outbox out)> send;
    // Before a server is killed.
    std::function<void(Party who)> on_loss;
    // After the coordinator was killed, which is restarted `back` later.
    std::function<void(Duration back)> on_coordinator_lost;
  };
  // What is handed in outlives this.
  Lifecycle(SimulatedWorld& world, SimulationRecord& record, Connections& connections, Task& task,
            Handlers handlers)
      : world_(world),
        record_(record),
        connections_(connections),
        task_(task),
        handlers_(std::move(handlers)),
        run_times_(world.settings.scenario, world.settings.coordinator.workers,
                   world.settings.seed) {}

  // All that a run begins with.
  void start_all();
  // Nothing, if it is alive. It joins the run.
  void start_worker(WorkerId id);
  // The process is over. Those that it was connected to notice.
  void kill(Party who, bool loses_messages);
  // Where the run recovers, it is restarted.
  void kill_server(const ServerDeath& death);
  // A member throws away all that it knows of the run, and joins it again.
  void rejoin(Party who);

 private:
  void kill_coordinator(const ServerDeath& death);
  void start_server(Party self);
  void start_evaluator();
  SimulatedWorkerSettings worker_settings(WorkerId id);
  Hello hello_of(Party who);
  void say_hello(Party who, uint64_t number, uint32_t tries);
  bool request_admission(Party who, uint64_t number);
  bool is_first_start() const;

  SimulatedWorld& world_;
  SimulationRecord& record_;
  Connections& connections_;
  Task& task_;
  const Handlers handlers_;
  RunTimes run_times_;
};

}  // namespace drover
