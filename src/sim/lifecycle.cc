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

// The first processes of a run are started together with the coordinator.
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
  if (!is_first_start() || !request_admission(self, number)) say_hello(self, number, 0);
}

void Lifecycle::start_evaluator() {
  if (world_.evaluator) world_.retired.emplace_back(std::move(world_.evaluator));
  const uint64_t number = world_.processes.start(kEvaluatorParty);
  world_.evaluator = std::make_unique<SimulatedEvaluator>(
      task_, world_.settings.coordinator.shards, [this, number](Outbox out) {
        if (world_.processes.is_current(kEvaluatorParty, number))
          handlers_.send(kEvaluatorParty, std::move(out));
      });
  if (!is_first_start() || !request_admission(kEvaluatorParty, number))
    say_hello(kEvaluatorParty, number, 0);
}

void Lifecycle::start_worker(WorkerId id) {
  const Party self = worker_party(id);
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
      .is_corrupt =
          [&scenario, id](Step step) {
            return std::any_of(scenario.corrupt_gradients.begin(), scenario.corrupt_gradients.end(),
                               [&](const CorruptGradient& each) {
                                 return each.worker == id && each.step == step;
                               });
          },
      .gradient_factor =
          [&scenario, id](Step step) {
            double factor = 1.0;
            for (const ByzantineFault& each : scenario.byzantine_faults) {
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

Hello Lifecycle::hello_of(Party party) {
  Hello hello{.role = party.role, .index = party.index, .host = "server0"};
  if (is_server(party)) {
    hello.host = "server" + std::to_string(party.index);
    hello.address = name_of(party);
    hello.kept = world_.servers[party].kept.versions();
  } else {
    hello.tensors = task_.layout().tensors();
  }
  if (party.role == Role::kWorker) {
    hello.host = node_name(world_.settings.scenario.node_of(party.index));
    if (world_.settings.scripts)
      hello.learning = Learning{.optimizer = world_.settings.coordinator.learning.optimizer,
                                .rate = world_.settings.scripts->first_rate};
  }
  return hello;
}

void Lifecycle::say_hello(Party party, uint64_t number, uint32_t tries) {
  const TimePoint arrival = world_.network.arrival(world_.time.now(), party, kCoordinatorParty,
                                                   Lane::kControl, kControlBytes, {});
  world_.time.plan(arrival, [this, party, number, tries] {
    if (!world_.processes.is_current(party, number) || record_.is_over() ||
        request_admission(party, number))
      return;
    if (tries >= kHelloTriesMax) return;
    // The loss of its earlier process has not been noticed yet, all places are taken, or the
    // coordinator is restarting.
    world_.time.plan(world_.time.now() + kRetry, [this, party, number, tries] {
      if (world_.processes.is_current(party, number)) say_hello(party, number, tries + 1);
    });
  });
}

// Returns whether the coordinator has admitted the process.
bool Lifecycle::request_admission(Party party, uint64_t number) {
  if (world_.coordinator->is_over() || !world_.processes.is_current(party, number)) return false;
  const bool here = world_.processes.connected(kCoordinatorParty, party);
  if (here) return false;
  world_.processes.connect(kCoordinatorParty, party);
  world_.processes.join(party, world_.incarnation);
  Status admitted = done();
  world_.with_coordinator([&](Coordinator& machine, CoordinatorOutput& out) {
    admitted = machine.on_hello(hello_of(party), world_.time.now(), out);
  });
  if (admitted) return true;
  world_.processes.disconnect(kCoordinatorParty, party);
  world_.processes.join(party, 0);
  return false;
}

void Lifecycle::kill(Party party, bool loses_messages) {
  if (!world_.processes.is_alive(party)) return;
  world_.retire(party);
  const bool serves = is_server(party) && world_.server_of(party.index) == party;
  if (serves && world_.witness != nullptr &&
      world_.is_watched(party, world_.processes.number(party)))
    world_.witness->on_server_lost(party.index);
  const uint64_t number = world_.processes.number(party);
  world_.processes.end(party, loses_messages);
  connections_.close_all(party, number);
}

void Lifecycle::kill_server(const ServerDeath& death) {
  const Party party{death.role, death.index};
  if (record_.is_over()) return;
  if (death.role == Role::kCoordinator) return kill_coordinator(death);
  if (!world_.processes.is_alive(party)) return;
  handlers_.on_loss(party);
  kill(party, death.loses_messages);
  if (is_server(party)) world_.servers[party].kept.clear();
  if (!world_.settings.coordinator.recovers) return;
  world_.time.plan(world_.time.now() + death.back, [this, party] {
    if (record_.is_over() || world_.processes.is_alive(party)) return;
    if (party.role == Role::kEvaluator) return start_evaluator();
    start_server(party);
  });
}

void Lifecycle::kill_coordinator(const ServerDeath& death) {
  if (world_.coordinator->is_over()) return;
  handlers_.on_loss(kCoordinatorParty);
  world_.coordinator->on_over();
  kill(kCoordinatorParty, death.loses_messages);
  handlers_.on_coordinator_lost(death.back);
}

void Lifecycle::rejoin(Party party) {
  kill(party, false);
  if (!world_.settings.coordinator.recovers) return;
  world_.time.plan(world_.time.now() + kRejoin, [this, party] {
    if (record_.is_over() || world_.processes.is_alive(party)) return;
    if (party.role == Role::kWorker) return start_worker(party.index);
    if (party.role == Role::kEvaluator) return start_evaluator();
    start_server(party);
  });
}

}  // namespace drover
