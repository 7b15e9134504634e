#include "sim/simulation.h"

#include <algorithm>

namespace drover {
namespace {

// Number of events between two calls of `pulse`.
constexpr uint64_t kEventsPerPulse = 256;
// Upper bound on the events in which all processes leave after the run has ended.
constexpr uint64_t kEventsAfterEnd = 100'000;
// How long a member that has lost a shard waits for the coordinator to react.
constexpr Duration kCoordinatorReaction = std::chrono::seconds(2);

}  // namespace

Simulation::Simulation(const SimulationSettings& settings, MakePolicy make_policy, Task& task,
                       std::vector<RunObserver*> observers, Witness* witness)
    : world_(settings, witness),
      record_(std::move(observers), witness, world_.time),
      schedule_(world_.time),
      connections_(
          world_, record_,
          {.on_connected = [this](Party at, Party party) { on_connected(at, party); },
           .on_client_lost = [this](Party at, Party party) { on_client_lost(at, party); },
           .on_server_lost = [this](Party at, Party party) { on_server_lost(at, party); }}),
      dispatcher_(world_, record_, connections_, cover_,
                  {.rejoin = [this](Party party) { lifecycle_.rejoin(party); },
                   .refuse = [this](Party party, const Status& status) { refuse(party, status); }}),
      transit_(world_,
               [this](Party from, Party to, const Outgoing& message, SharedBuffer floats) {
                 dispatcher_.receive(from, to, message, std::move(floats));
               }),
      incarnations_(world_, record_, connections_, cover_,
                    {.make_policy = std::move(make_policy),
                     .carry_out = [this](CoordinatorOutput out) { carry_out(std::move(out)); },
                     .restarted = {}}),
      lifecycle_(
          world_, record_, connections_, task,
          {.send = [this](Party from, Outbox out) { transit_.send_all(from, std::move(out)); },
           .on_loss = [this](Party party) { incarnations_.note_loss(party); },
           .on_coordinator_lost =
               [this](Duration back) { incarnations_.on_coordinator_lost(back); }}) {
  record_.on_failure([this](const std::string& why) {
    world_.with_coordinator([&](Coordinator& machine, CoordinatorOutput& out) {
      machine.on_failure(EndCause::kRecordFailed, why, now(), out);
    });
  });
}

Result<RunEnd> Simulation::run(const std::function<bool()>& pulse) {
  incarnations_.begin(world_.settings.coordinator);
  lifecycle_.start_all();
  plan_faults();

  for (uint64_t events = 0; !record_.is_over(); ++events) {
    if (events % kEventsPerPulse == 0 && !pulse())
      world_.with_coordinator(
          [&](Coordinator& machine, auto& out) { machine.on_interrupt(now(), out); });
    if (!record_.is_over() && !world_.time.advance())
      record_.breach("the run hangs: no event is planned");
    if (world_.witness != nullptr) world_.witness->on_load(world_.load(), now());
  }
  if (world_.witness != nullptr && !record_.is_breached()) run_remaining_events();
  return record_.result();
}

void Simulation::plan_faults() {
  const Scenario& scenario = world_.settings.scenario;
  for (const Death& death : scenario.deaths) {
    schedule_.at(death.when, [this, death] {
      lifecycle_.kill(worker_party(death.worker), death.loses_messages);
    });
  }
  for (const ServerDeath& death : scenario.server_deaths)
    schedule_.at(death.when, [this, death] { lifecycle_.kill_server(death); });
  for (const Join& join : scenario.joins)
    schedule_.at(join.when, [this, worker = join.worker] { lifecycle_.start_worker(worker); });
  for (const Stall& stall : scenario.stalls) {
    schedule_.at(stall.when, [this, stall] {
      if (SimulatedServer* const server = world_.find_server({Role::kShard, stall.shard}))
        server->hang_until(world_.time.now() + stall.length);
    });
  }
  for (const Partition& partition : scenario.partitions) {
    schedule_.at(partition.when, [this, &partition] {
      world_.network.isolate(partition.selector, world_.time.now() + partition.length);
    });
  }
}

void Simulation::run_remaining_events() {
  for (uint64_t events = 0; events < kEventsAfterEnd && !record_.is_breached(); ++events) {
    if (!world_.time.advance()) return;
  }
}

void Simulation::on_connected(Party server, Party client) {
  SimulatedServer* const shard = world_.find_server(server);
  if (!is_server(client))
    return shard->on_joined(client.role == Role::kWorker ? client.index : kEvaluator);
  refuse(client, shard->on_standby(client.index));
}

void Simulation::on_client_lost(Party server, Party client) {
  const bool watched = world_.witness != nullptr && client.role == Role::kWorker &&
                       world_.is_watched(server, world_.processes.number(server));
  if (watched) world_.witness->on_lost(world_.seen_as(server), client.index, world_.time.now());
  if (server == kCoordinatorParty) {
    return world_.with_coordinator([&](Coordinator& machine, CoordinatorOutput& out) {
      machine.on_lost(client.role, client.index, disconnected("the process was killed"),
                      world_.time.now(), out);
    });
  }
  SimulatedServer& shard = *world_.find_server(server);
  if (is_server(client)) {
    cover_.on_disconnected(server.index);
    return shard.on_standby_lost();
  }
  shard.on_lost(client.role == Role::kEvaluator ? kEvaluator : client.index);
}

// After the loss of a shard, the coordinator has some time to react before the client reports it.
void Simulation::on_server_lost(Party server, Party client) {
  if (record_.is_over()) return;
  if (server == kCoordinatorParty) return lifecycle_.rejoin(client);
  const uint64_t number = world_.processes.number(client);
  world_.time.plan(world_.time.now() + kCoordinatorReaction, [this, server, client, number] {
    if (!world_.processes.is_current(client, number) || record_.is_over()) return;
    if (client.role == Role::kWorker && world_.workers[client.index]->is_over()) return;
    transit_.send_all(
        client, {{to_coordinator(), control_frame(Farewell{.outcome = RunOutcome::kFailed,
                                                           .reason = "lost " + name_of(server)})}});
    lifecycle_.rejoin(client);
  });
}

void Simulation::carry_out(CoordinatorOutput out) {
  for (const Outgoing& message : out.messages) {
    // A plan makes its receiver serve the shard.
    const Control* const control = control_in(message);
    if (control != nullptr && std::holds_alternative<Plan>(*control))
      world_.serving[message.to.index] = message.to.role;
  }
  transit_.send_all(kCoordinatorParty, std::move(out.messages));
  for (const RunRecord& record : out.records) {
    record_.record(record);
    const auto* decision = std::get_if<DecisionRecord>(&record);
    if (decision == nullptr) continue;
    incarnations_.on_step_opened();
    schedule_.on_step(decision->step);
  }
  if (world_.coordinator->machine().restarts() && !world_.coordinator->is_over())
    incarnations_.on_restart_announced();
}

// A machine reports whether `party` breaks the protocol. That is a bug in Drover, unless the
// scenario causes it.
void Simulation::refuse(Party party, const Status& status) {
  if (status) return;
  const auto& repeated = world_.settings.scenario.repeated_closings;
  const bool expected = std::any_of(repeated.begin(), repeated.end(), [&](const auto& each) {
    return is_server(party) && each.shard == party.index;
  });
  if (!expected) return record_.breach(name_of(party) + ": " + status.error().message);
  // Its connection is closed. It joins again if the run recovers.
  incarnations_.note_loss(party);
  lifecycle_.rejoin(party);
}

}  // namespace drover
