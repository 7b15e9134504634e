// Lifecycle: starts and stops the processes of a simulated run, except the coordinator, as the
// launcher of a live run does.
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
    // Called before a server is killed.
    std::function<void(Party party)> on_loss;
    // Called after the coordinator was killed. It is restarted `back` later.
    std::function<void(Duration back)> on_coordinator_lost;
  };
  // REQUIRES: the references outlive this object.
  Lifecycle(SimulatedWorld& world, SimulationRecord& record, Connections& connections, Task& task,
            Handlers handlers)
      : world_(world),
        record_(record),
        connections_(connections),
        task_(task),
        handlers_(std::move(handlers)),
        run_times_(world.settings.scenario, world.settings.coordinator.workers,
                   world.settings.seed) {}

  // Starts all processes that a run begins with.
  void start_all();
  // Starts a worker, which joins the run. Does nothing if the worker is alive.
  void start_worker(WorkerId id);
  // Stops a process. The processes that it was connected to are notified.
  void kill(Party party, bool loses_messages);
  // Stops a server. It is restarted if the run recovers.
  void kill_server(const ServerDeath& death);
  // A member discards all its state of the run, and joins it again.
  void rejoin(Party party);

 private:
  void kill_coordinator(const ServerDeath& death);
  void start_server(Party self);
  void start_evaluator();
  SimulatedWorkerSettings worker_settings(WorkerId id);
  Hello hello_of(Party party);
  void say_hello(Party party, uint64_t number, uint32_t tries);
  bool request_admission(Party party, uint64_t number);
  bool is_first_start() const;

  SimulatedWorld& world_;
  SimulationRecord& record_;
  Connections& connections_;
  Task& task_;
  const Handlers handlers_;
  RunTimes run_times_;
};

}  // namespace drover
