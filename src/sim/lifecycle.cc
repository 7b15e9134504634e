#include "sim/lifecycle.h"

#include <algorithm>
#include <string>

#include "sim/transit.h"

namespace drover {
namespace {

constexpr uint32_t kHelloTriesMax = 1000;
// From the end of a member's incarnation to the beginning of the next.
constexpr Duration kRejoin = std::chrono::milliseconds(100);

}  // namespace

void Lifecycle::start_all() {
  const CoordinatorSettings& job = world_.settings.coordinator;
  for (ShardId shard = 0; shard < job.shards; ++shard) start_server({Role::kShard, shard});
  for (ShardId shard = 0; shard < job.shards && job.standby; ++shard)
    start_server({Role::kStandby, shard});
  if (job.evaluator) start_evaluator();
  for (WorkerId worker = 0; worker < job.workers; ++worker) {
    if (!world_.settings.scenario.joins_later(worker)) start_worker(worker);
  }
}

// The first of a run are started together with the coordinator.
bool Lifecycle::is_first_start() const {
  return world_.incarnation <= 1 && world_.time.now() == TimePoint{};
}

void Lifecycle::start_server(Party self) {
  SimulatedWorld::Server& server = world_.servers[self];
  if (server.process) world_.retired.emplace_back(std::move(server.process));
  const uint64_t number = world_.processes.start(self);
  server.process = std::make_unique<SimulatedServer>(
      self, server.kept, world_.settings.window_bytes, world_.time, world_.disk,
      [this, self, number](Outbox out) {
        if (world_.processes.is_current(self, number)) handlers_.send(self, std::move(out));
      },
      [this, self](const Outgoing& message) {
        if (world_.witness != nullptr && world_.is_watched(self, world_.processes.number(self)))
          world_.witness->on_sent(world_.seen_as(self), message, world_.time.now());
      });
  // The first of a run are started together with the coordinator.
  if (!is_first_start() || !request_admission(self, number)) say_hello(self, number, 0);
}

void Lifecycle::start_evaluator() {
  if (world_.evaluator) world_.retired.emplace_back(std::move(world_.evaluator));
  const uint64_t number = world_.processes.start(kEvaluatorEnd);
  world_.evaluator = std::make_unique<SimulatedEvaluator>(
      task_, world_.settings.coordinator.shards, [this, number](Outbox out) {
        if (world_.processes.is_current(kEvaluatorEnd, number))
          handlers_.send(kEvaluatorEnd, std::move(out));
      });
  if (!is_first_start() || !request_admission(kEvaluatorEnd, number))
    say_hello(kEvaluatorEnd, number, 0);
}

void Lifecycle::start_worker(WorkerId id) {
  const Party self = worker_end(id);
  if (world_.processes.is_alive(self)) return;
  if (world_.workers[id]) world_.retired.emplace_back(std::move(world_.workers[id]));
  const uint64_t number = world_.processes.start(self);
  world_.workers[id] = std::make_unique<SimulatedWorker>(
      worker_settings(id), task_, world_.time,
      [this, self, number](Outbox out) {
        if (world_.processes.is_current(self, number)) handlers_.send(self, std::move(out));
      },
      [this, self] { kill(self, false); });
  say_hello(self, number, 0);
}

SimulatedWorkerSettings Lifecycle::worker_settings(WorkerId id) {
  const Scenario& scenario = world_.settings.scenario;
  SimulatedWorkerSettings worker{
      .id = id,
      .workers = world_.settings.coordinator.workers,
      .shards = world_.settings.coordinator.shards,
      .batch = world_.settings.batch_of(id),
      .own_part = world_.settings.own_parts,
      .layers = scenario.layers,
      .number_type = world_.settings.number_type,
      .compute_time = [this, id](Step step) { return from_seconds(run_times_.seconds(step, id)); },
      .poisoned =
          [&scenario, id](Step step) {
            return std::any_of(
                scenario.poisons.begin(), scenario.poisons.end(),
                [&](const Poison& each) { return each.worker == id && each.step == step; });
          },
      .lie =
          [&scenario, id](Step step) {
            double factor = 1.0;
            for (const Lie& each : scenario.lies) {
              if (each.worker == id && step >= each.step.value_or(0)) factor *= each.factor;
            }
            return factor;
          },
      .script = world_.settings.scripts};
  for (const Leave& each : scenario.leaves) {
    if (each.worker == id) worker.leave = each;
  }
  return worker;
}

Hello Lifecycle::hello_of(Party who) {
  Hello hello{.role = who.role, .index = who.index, .host = "server0"};
  if (is_server(who)) {
    hello.host = "server" + std::to_string(who.index);
    hello.address = name_of(who);
    hello.kept = world_.servers[who].kept.versions();
  } else {
    hello.tensors = task_.layout().tensors();
  }
  if (who.role == Role::kWorker) {
    hello.host = node_name(world_.settings.scenario.node_of(who.index));
    if (world_.settings.scripts)
      hello.learning = Learning{.optimizer = world_.settings.coordinator.learning.optimizer,
                                .rate = world_.settings.scripts->first_rate};
  }
  return hello;
}

void Lifecycle::say_hello(Party who, uint64_t number, uint32_t tries) {
  const TimePoint arrival = world_.network.arrival(world_.time.now(), who, kCoordinatorEnd,
                                                   Lane::kControl, kControlBytes, {});
  world_.time.plan(arrival, [this, who, number, tries] {
    if (!world_.processes.is_current(who, number) || record_.is_over() ||
        request_admission(who, number))
      return;
    if (tries >= kHelloTriesMax) return;
    // Its earlier process has not been missed yet, there is no room now, or the coordinator is
    // restarting.
    world_.time.plan(world_.time.now() + kRetry, [this, who, number, tries] {
      if (world_.processes.is_current(who, number)) say_hello(who, number, tries + 1);
    });
  });
}

// Returns whether the coordinator has admitted it.
bool Lifecycle::request_admission(Party who, uint64_t number) {
  if (world_.coordinator->is_over() || !world_.processes.is_current(who, number)) return false;
  const bool here = world_.processes.connected(kCoordinatorEnd, who);
  if (here) return false;
  world_.processes.connect(kCoordinatorEnd, who);
  world_.processes.join(who, world_.incarnation);
  Status admitted = done();
  world_.with_coordinator([&](Coordinator& machine, CoordinatorOutput& out) {
    admitted = machine.on_hello(hello_of(who), world_.time.now(), out);
  });
  if (admitted) return true;
  world_.processes.disconnect(kCoordinatorEnd, who);
  world_.processes.join(who, 0);
  return false;
}

void Lifecycle::kill(Party who, bool loses_messages) {
  if (!world_.processes.is_alive(who)) return;
  world_.retire(who);
  const bool serves = is_server(who) && world_.server_of(who.index) == who;
  if (serves && world_.witness != nullptr && world_.is_watched(who, world_.processes.number(who)))
    world_.witness->on_server_lost(who.index);
  const uint64_t number = world_.processes.number(who);
  world_.processes.end(who, loses_messages);
  connections_.close_all(who, number);
}

void Lifecycle::kill_server(const ServerDeath& death) {
  const Party who{death.role, death.index};
  if (record_.is_over()) return;
  if (death.role == Role::kCoordinator) return kill_coordinator(death);
  if (!world_.processes.is_alive(who)) return;
  handlers_.on_loss(who);
  kill(who, death.loses_messages);
  if (is_server(who)) world_.servers[who].kept.clear();
  if (!world_.settings.coordinator.recovers) return;
  world_.time.plan(world_.time.now() + death.back, [this, who] {
    if (record_.is_over() || world_.processes.is_alive(who)) return;
    if (who.role == Role::kEvaluator) return start_evaluator();
    start_server(who);
  });
}

void Lifecycle::kill_coordinator(const ServerDeath& death) {
  if (world_.coordinator->is_over()) return;
  handlers_.on_loss(kCoordinatorEnd);
  world_.coordinator->on_over();
  kill(kCoordinatorEnd, death.loses_messages);
  handlers_.on_coordinator_lost(death.back);
}

void Lifecycle::rejoin(Party who) {
  kill(who, false);
  if (!world_.settings.coordinator.recovers) return;
  world_.time.plan(world_.time.now() + kRejoin, [this, who] {
    if (record_.is_over() || world_.processes.is_alive(who)) return;
    if (who.role == Role::kWorker) return start_worker(who.index);
    if (who.role == Role::kEvaluator) return start_evaluator();
    start_server(who);
  });
}

}  // namespace drover
