#include "sim/simulation.h"

#include <algorithm>

#include "core/chance.h"

namespace drover {
namespace {

constexpr Duration kTick = std::chrono::seconds(1);
constexpr Duration kRetry = std::chrono::milliseconds(50);
constexpr uint32_t kHelloTriesMax = 1000;
// How often the caller is asked whether to continue.
constexpr uint64_t kEventsPerPulse = 256;
// All processes leave when the run has ended; this is far more than that takes.
constexpr uint64_t kEventsAfterEnd = 100'000;
// What a control message weighs on the wire, about.
constexpr size_t kControlBytes = 128;
// From the end of one incarnation of the coordinator to the beginning of the next.
constexpr Duration kCoordinatorRestart = std::chrono::milliseconds(50);
// The same of a member that joins again.
constexpr Duration kRejoin = std::chrono::milliseconds(100);
// How long a member that has lost a shard waits for the coordinator's word.
constexpr Duration kWordAwaited = std::chrono::seconds(2);
// How long a run that restarts waits for its workers, if some are there.
constexpr Duration kReturnsWithin = std::chrono::seconds(15);

constexpr Party kCoordinatorEnd{Role::kCoordinator, 0};
constexpr Party kEvaluatorEnd{Role::kEvaluator, 0};
constexpr Party worker_end(WorkerId worker) { return {Role::kWorker, worker}; }

std::string name_of(Party end) { return peer_name(end.role, end.index); }

bool is_server(Party who) { return who.role == Role::kShard || who.role == Role::kStandby; }

const Control* control_in(const Outgoing& message) {
  return std::get_if<Control>(&message.frame.payload);
}

}  // namespace

Simulation::Simulation(const SimulationSettings& settings, MakePolicy make_policy, Task& task,
                       std::vector<RunObserver*> observers, Witness* witness)
    : settings_(settings),
      make_policy_(std::move(make_policy)),
      task_(task),
      observers_(std::move(observers)),
      witness_(witness),
      run_times_(settings_.scenario, settings.coordinator.workers, settings.seed),
      network_(settings_.scenario, settings.seed),
      disk_(settings_.scenario.disk, settings.seed),
      workers_(settings.coordinator.workers),
      repeated_closings_(settings.scenario.repeated_closings) {}

// --- running

Result<RunEnd> Simulation::run(const std::function<bool()>& pulse) {
  begin_incarnation(settings_.coordinator);
  const uint32_t shards = settings_.coordinator.shards;
  for (ShardId shard = 0; shard < shards; ++shard) start_server({Role::kShard, shard});
  for (ShardId shard = 0; shard < shards && settings_.coordinator.standby; ++shard)
    start_server({Role::kStandby, shard});
  if (settings_.coordinator.evaluator) start_evaluator();
  for (WorkerId worker = 0; worker < workers_.size(); ++worker) {
    if (!settings_.scenario.joins_later(worker)) start_worker(worker);
  }
  plan_faults();

  for (uint64_t events = 0; !is_over(); ++events) {
    if (events % kEventsPerPulse == 0 && !pulse())
      with_coordinator(
          [&](Coordinator& machine, auto& out) { machine.on_interrupt(time_.now(), out); });
    if (!is_over() && !time_.advance()) breach("the run hangs: nothing is left to happen");
    if (witness_ != nullptr) witness_->on_load(load(), time_.now());
  }
  if (witness_ != nullptr && breach_.empty()) finish_what_is_under_way();
  if (!breach_.empty()) return Error{ErrorKind::kSystem, breach_};
  // A run that could not be recorded to its end has not completed, whatever was trained.
  if (!failure_.empty()) {
    end_->outcome = RunOutcome::kFailed;
    end_->reason = failure_;
    end_->cause = EndCause::kRecordFailed;
  }
  return *end_;
}

bool Simulation::is_over() const { return end_ || !breach_.empty(); }

// --- the run's incarnations

void Simulation::begin_incarnation(const CoordinatorSettings& settings) {
  ++incarnation_;
  processes_.start(kCoordinatorEnd);
  processes_.join(kCoordinatorEnd, incarnation_);
  if (coordinator_) retired_.emplace_back(std::move(coordinator_));
  training_ = false;
  serving_.clear();
  cover_.restart(settings.resume ? settings.resume->step : 0);
  coordinator_ = std::make_unique<SimulatedCoordinator>(
      settings, make_policy_(), time_, disk_,
      [this](CoordinatorOutput out) { carry_out(std::move(out)); },
      [this](const CheckpointReady& checkpoint) {
        if (witness_ != nullptr)
          witness_->on_checkpoint(checkpoint, disk_.parts_of(checkpoint.version), time_.now());
      });
  time_.plan(time_.now() + kTick, [this, incarnation = incarnation_] { tick(incarnation); });
}

// The coordinator says that the run restarts, and its process makes room for the next.
void Simulation::note_restart() {
  const std::optional<ResumeFrom> committed = coordinator_->machine().committed();
  coordinator_->on_over();
  const uint64_t number = processes_.number(kCoordinatorEnd);
  close_connections(kCoordinatorEnd, number);
  processes_.end(kCoordinatorEnd, false);
  restart(committed);
}

void Simulation::restart(const std::optional<ResumeFrom>& committed) {
  CoordinatorSettings next = settings_.coordinator;
  if (committed) {
    next.resume = committed;
  } else if (const CheckpointReady* const newest = disk_.newest_before(next.steps)) {
    next.resume = ResumeFrom{.step = newest->version,
                             .folder = "step-" + std::to_string(newest->version),
                             .tensors = newest->tensors,
                             .settings = newest->settings,
                             .noise = newest->noise};
  }
  if (next.resume) {
    next.pull.warmup += next.resume->step;
    if (next.balance) next.balance->warmup += next.resume->step;
  }
  const Version version = next.resume ? next.resume->step : 0;
  if (!committed) disk_.set_aside_after(version);
  next.return_timeout = kReturnsWithin;
  next.before = settings_.coordinator.before + time_.now() + kCoordinatorRestart;
  next.life = incarnation_ + 1;
  if (witness_ != nullptr)
    witness_->on_restart(
        {.version = version, .from_memory = committed.has_value(), .loses_none = covered_},
        time_.now());
  // Those that keep it are waited for, but not as long as some messages take in some scenarios.
  const Scenario& scenario = settings_.scenario;
  covered_ = covered_ && !scenario.slow_coordinator && scenario.stalls.empty();
  if (restarted_) check(restarted_(version));
  time_.plan(time_.now() + kCoordinatorRestart, [this, next] {
    if (!is_over()) begin_incarnation(next);
  });
}

void Simulation::lose_coordinator(const ServerDeath& death) {
  if (coordinator_->is_over()) return;
  note_loss(kCoordinatorEnd);
  coordinator_->on_over();
  kill(kCoordinatorEnd, death.loses_messages);
  if (!settings_.coordinator.recovers)
    return end_run({.outcome = RunOutcome::kFailed,
                    .cause = EndCause::kServerLost,
                    .reason = "lost the coordinator: the process was killed"});
  time_.plan(time_.now() + death.back, [this] {
    if (!is_over()) restart(std::nullopt);
  });
}

void Simulation::end_run(const RunEnd& end) {
  for (RunObserver* observer : observers_) check(observer->on_end(end));
  end_ = end;
}

// Members that do not come in time are left out; once training has begun there is nothing to time.
void Simulation::tick(uint64_t incarnation) {
  if (training_ || incarnation != incarnation_ || coordinator_->is_over() || is_over()) return;
  with_coordinator(
      [&](Coordinator& machine, CoordinatorOutput& out) { machine.on_tick(time_.now(), out); });
  time_.plan(time_.now() + kTick, [this, incarnation] { tick(incarnation); });
}

void Simulation::plan_faults() {
  const Scenario& scenario = settings_.scenario;
  for (const Death& death : scenario.deaths) {
    at(death.when, [this, death] { kill(worker_end(death.worker), death.loses_messages); });
  }
  for (const ServerDeath& death : scenario.server_deaths)
    at(death.when, [this, death] { kill_server(death); });
  for (const Join& join : scenario.joins)
    at(join.when, [this, worker = join.worker] { start_worker(worker); });
  for (const Stall& stall : scenario.stalls) {
    at(stall.when, [this, stall] {
      if (SimulatedServer* const server = find_server({Role::kShard, stall.shard}))
        server->hang_until(time_.now() + stall.length);
    });
  }
  for (const Partition& partition : scenario.partitions) {
    at(partition.when,
       [this, &partition] { network_.isolate(partition.whom, time_.now() + partition.length); });
  }
}

void Simulation::at(const Moment& moment, std::function<void()> happen) {
  if (moment.step) {
    at_step_.emplace(*moment.step, std::move(happen));
  } else {
    time_.plan(moment.at, std::move(happen));
  }
}

// --- processes that come and go

void Simulation::start_server(Party self) {
  Server& server = servers_[self];
  if (server.process) retired_.emplace_back(std::move(server.process));
  const uint64_t number = processes_.start(self);
  server.process = std::make_unique<SimulatedServer>(
      self, server.kept, settings_.window_bytes, time_, disk_,
      [this, self, number](Outbox out) {
        if (processes_.is_current(self, number)) send_all(self, std::move(out));
      },
      [this, self](const Outgoing& message) {
        if (witness_ != nullptr && is_watched(self, processes_.number(self)))
          witness_->on_sent(seen_as(self), message, time_.now());
      });
  // The first of a run are started together with the coordinator.
  if (incarnation_ > 1 || time_.now() > TimePoint{} || !knock(self, number))
    say_hello(self, number, 0);
}

void Simulation::start_evaluator() {
  if (evaluator_) retired_.emplace_back(std::move(evaluator_));
  const uint64_t number = processes_.start(kEvaluatorEnd);
  evaluator_ = std::make_unique<SimulatedEvaluator>(
      task_, settings_.coordinator.shards, [this, number](Outbox out) {
        if (processes_.is_current(kEvaluatorEnd, number)) send_all(kEvaluatorEnd, std::move(out));
      });
  if (incarnation_ > 1 || time_.now() > TimePoint{} || !knock(kEvaluatorEnd, number))
    say_hello(kEvaluatorEnd, number, 0);
}

void Simulation::start_worker(WorkerId id) {
  const Party self = worker_end(id);
  if (processes_.is_alive(self)) return;
  if (workers_[id]) retired_.emplace_back(std::move(workers_[id]));
  const uint64_t number = processes_.start(self);
  workers_[id] = std::make_unique<SimulatedWorker>(
      worker_settings(id), task_, time_,
      [this, self, number](Outbox out) {
        if (processes_.is_current(self, number)) send_all(self, std::move(out));
      },
      [this, self] { kill(self, false); });
  say_hello(self, number, 0);
}

SimulatedWorkerSettings Simulation::worker_settings(WorkerId id) {
  const Scenario& scenario = settings_.scenario;
  SimulatedWorkerSettings worker{
      .id = id,
      .workers = settings_.coordinator.workers,
      .shards = settings_.coordinator.shards,
      .batch = settings_.batch_of(id),
      .own_part = settings_.own_parts,
      .layers = scenario.layers,
      .number_type = settings_.number_type,
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
      .script = settings_.scripts};
  for (const Leave& each : scenario.leaves) {
    if (each.worker == id) worker.leave = each;
  }
  return worker;
}

Hello Simulation::hello_of(Party who) {
  Hello hello{.role = who.role, .index = who.index, .host = "server0"};
  if (is_server(who)) {
    hello.host = "server" + std::to_string(who.index);
    hello.address = name_of(who);
    hello.kept = servers_[who].kept.versions();
  } else {
    hello.tensors = task_.layout().tensors();
  }
  if (who.role == Role::kWorker) {
    hello.host = node_name(settings_.scenario.node_of(who.index));
    if (settings_.scripts)
      hello.learning = Learning{.optimizer = settings_.coordinator.learning.optimizer,
                                .rate = settings_.scripts->first_rate};
  }
  return hello;
}

void Simulation::say_hello(Party who, uint64_t number, uint32_t tries) {
  const TimePoint arrival =
      network_.arrival(time_.now(), who, kCoordinatorEnd, Lane::kControl, kControlBytes, {});
  time_.plan(arrival, [this, who, number, tries] {
    if (!processes_.is_current(who, number) || is_over() || knock(who, number)) return;
    if (tries >= kHelloTriesMax) return;
    // Its earlier process has not been missed yet, there is no room now, or the coordinator is
    // restarting.
    time_.plan(time_.now() + kRetry, [this, who, number, tries] {
      if (processes_.is_current(who, number)) say_hello(who, number, tries + 1);
    });
  });
}

// Returns whether the coordinator has admitted it.
bool Simulation::knock(Party who, uint64_t number) {
  if (coordinator_->is_over() || !processes_.is_current(who, number)) return false;
  const bool here = processes_.connected(kCoordinatorEnd, who);
  if (here) return false;
  processes_.connect(kCoordinatorEnd, who);
  processes_.join(who, incarnation_);
  Status admitted = done();
  with_coordinator([&](Coordinator& machine, CoordinatorOutput& out) {
    admitted = machine.on_hello(hello_of(who), time_.now(), out);
  });
  if (admitted) return true;
  processes_.disconnect(kCoordinatorEnd, who);
  processes_.join(who, 0);
  return false;
}

// To a shard, or to the one that a standby is to stand by for.
void Simulation::connect(Party client, uint64_t number, Party server) {
  if (!processes_.is_current(client, number)) return;
  const TimePoint arrival =
      network_.arrival(time_.now(), client, server, Lane::kControl, kControlBytes, {});
  time_.plan(arrival, [this, client, number, server] {
    if (!processes_.is_current(client, number)) return;
    SimulatedServer* const shard = find_server(server);
    const bool here = processes_.connected(server, client);
    if (here || shard == nullptr || !shard->has_plan()) {
      if (is_over()) return;
      time_.plan(time_.now() + kRetry,
                 [this, client, number, server] { connect(client, number, server); });
      return;
    }
    processes_.connect(server, client);
    if (!is_server(client))
      return shard->on_joined(client.role == Role::kWorker ? client.index : kEvaluator);
    refuse(client, shard->on_standby(client.index));
  });
}

// The process is over. Those that it was connected to notice.
void Simulation::kill(Party who, bool loses_messages) {
  if (!processes_.is_alive(who)) return;
  retire(who);
  const bool serves = is_server(who) && server_of(who.index) == who;
  if (serves && witness_ != nullptr && is_watched(who, processes_.number(who)))
    witness_->on_server_lost(who.index);
  const uint64_t number = processes_.number(who);
  processes_.end(who, loses_messages);
  close_connections(who, number);
}

void Simulation::retire(Party who) {
  if (who.role == Role::kWorker) workers_[who.index]->on_over();
  if (who.role == Role::kEvaluator) evaluator_->on_over();
  if (is_server(who)) servers_[who].process->on_over();
}

void Simulation::kill_server(const ServerDeath& death) {
  const Party who{death.role, death.index};
  if (is_over()) return;
  if (death.role == Role::kCoordinator) return lose_coordinator(death);
  if (!processes_.is_alive(who)) return;
  note_loss(who);
  kill(who, death.loses_messages);
  if (is_server(who)) servers_[who].kept.clear();
  if (!settings_.coordinator.recovers) return;
  time_.plan(time_.now() + death.back, [this, who] {
    if (is_over() || processes_.is_alive(who)) return;
    if (who.role == Role::kEvaluator) return start_evaluator();
    start_server(who);
  });
}

// Nothing else was lost so far, and the other process for this shard has all that the coordinator
// knows of: then no step may be lost.
void Simulation::note_loss(Party who) {
  const Party other{who.role == Role::kShard ? Role::kStandby : Role::kShard, who.index};
  ++server_losses_;
  covered_ = false;
  if (server_losses_ > 1 || !is_server(who) || server_of(who.index) != who) return;
  const bool connected =
      processes_.is_alive(other) &&
      processes_.connected(who, processes_.number(who), other, processes_.number(other));
  const Step open = coordinator_->machine().step();
  covered_ = connected && cover_.covers(who.index, open) && open < settings_.coordinator.steps;
}

// A member throws away all that it knows of the run, and joins it again.
void Simulation::rejoin(Party who) {
  kill(who, false);
  if (!settings_.coordinator.recovers) return;
  time_.plan(time_.now() + kRejoin, [this, who] {
    if (is_over() || processes_.is_alive(who)) return;
    if (who.role == Role::kWorker) return start_worker(who.index);
    if (who.role == Role::kEvaluator) return start_evaluator();
    start_server(who);
  });
}

// Each connection ends behind what was sent on it.
void Simulation::close_connections(Party who, uint64_t number) {
  const auto close = [&](Party server, Party client, Lane lane) {
    const bool ended = server == who;
    const uint64_t other = processes_.number(ended ? client : server);
    plan_close(server, client, lane, ended ? number : other, ended ? other : number, ended);
  };
  if (who == kCoordinatorEnd) {
    for (const Party client : processes_.clients_of(who)) close(who, client, Lane::kControl);
    return;
  }
  close(kCoordinatorEnd, who, Lane::kControl);
  if (is_server(who)) {
    for (const Party server : processes_.servers_of(who)) {
      if (server != kCoordinatorEnd) close(server, who, Lane::kBulk);
    }
  } else {
    for (ShardId shard = 0; shard < settings_.coordinator.shards; ++shard) {
      // The process that serves now may not be the one that it is connected to.
      const Party standby{Role::kStandby, shard};
      const Party server =
          processes_.connected(standby, who) ? standby : Party{Role::kShard, shard};
      for (const Lane lane : {Lane::kControl, Lane::kBulk}) close(server, who, lane);
    }
  }
  if (!is_server(who)) return;
  for (const Party client : processes_.clients_of(who)) close(who, client, Lane::kControl);
}

void Simulation::plan_close(Party server, Party client, Lane lane, uint64_t server_number,
                            uint64_t client_number, bool server_ended) {
  const Party from = server_ended ? server : client;
  const Party to = server_ended ? client : server;
  const TimePoint arrival = network_.arrival(time_.now(), from, to, lane, 0, {});
  time_.plan(arrival, [this, server, client, server_number, client_number, server_ended] {
    if (!processes_.connected(server, server_number, client, client_number)) return;
    processes_.disconnect(server, client);
    if (server_ended) {
      if (processes_.is_current(client, client_number)) on_server_lost(server, client);
    } else if (processes_.is_current(server, server_number)) {
      on_client_lost(server, client);
    }
  });
}

void Simulation::on_client_lost(Party server, Party client) {
  const bool watched = witness_ != nullptr && client.role == Role::kWorker &&
                       is_watched(server, processes_.number(server));
  if (watched) witness_->on_lost(seen_as(server), client.index, time_.now());
  if (server == kCoordinatorEnd) {
    return with_coordinator([&](Coordinator& machine, CoordinatorOutput& out) {
      machine.on_lost(client.role, client.index, disconnected("the process was killed"),
                      time_.now(), out);
    });
  }
  SimulatedServer& shard = *find_server(server);
  if (is_server(client)) {
    cover_.on_disconnected(server.index);
    return shard.on_standby_lost();
  }
  shard.on_lost(client.role == Role::kEvaluator ? kEvaluator : client.index);
}

// Of a shard the coordinator gets a moment to speak first.
void Simulation::on_server_lost(Party server, Party client) {
  if (is_over()) return;
  if (server == kCoordinatorEnd) return rejoin(client);
  const uint64_t number = processes_.number(client);
  time_.plan(time_.now() + kWordAwaited, [this, server, client, number] {
    if (!processes_.is_current(client, number) || is_over()) return;
    if (client.role == Role::kWorker && workers_[client.index]->is_over()) return;
    send_all(client,
             {{to_coordinator(), control_frame(Farewell{.outcome = RunOutcome::kFailed,
                                                        .reason = "lost " + name_of(server)})}});
    rejoin(client);
  });
}

// --- what the machines say

template <typename Work>
void Simulation::with_coordinator(Work&& work) {
  coordinator_->work(work);
}

void Simulation::carry_out(CoordinatorOutput out) {
  for (const Outgoing& message : out.messages) {
    // Who serves is known from now on.
    const Control* const control = control_in(message);
    if (control != nullptr && std::holds_alternative<Plan>(*control))
      serving_[message.to.index] = message.to.role;
  }
  send_all(kCoordinatorEnd, std::move(out.messages));
  for (const Happening& happening : out.happenings) record(happening);
  if (coordinator_->machine().again() && !coordinator_->is_over()) note_restart();
}

void Simulation::record(const Happening& happening) {
  for (RunObserver* observer : observers_) check(tell(happening, *observer));
  if (const auto* end = std::get_if<RunEnd>(&happening)) end_ = *end;
  const auto* decision = std::get_if<DecisionRecord>(&happening);
  if (decision == nullptr) return;
  training_ = true;
  covered_ = false;  // it has continued
  const auto [first, last] = at_step_.equal_range(decision->step);
  for (auto due = first; due != last; ++due) time_.plan(time_.now(), std::move(due->second));
  at_step_.erase(first, last);
}

void Simulation::check(const Status& recorded) {
  if (recorded || !failure_.empty()) return;
  failure_ = recorded.error().message;
  with_coordinator([&](Coordinator& machine, CoordinatorOutput& out) {
    machine.on_failure(EndCause::kRecordFailed, failure_, time_.now(), out);
  });
}

void Simulation::breach(const std::string& what) {
  if (breach_.empty()) breach_ = what;
  if (witness_ != nullptr) witness_->on_breach(what, time_.now());
}

// A machine says that `who` breaks the protocol: a bug of ours, unless the scenario makes it.
void Simulation::refuse(Party who, const Status& status) {
  if (status) return;
  const auto& repeated = settings_.scenario.repeated_closings;
  const bool expected = std::any_of(repeated.begin(), repeated.end(), [&](const auto& each) {
    return is_server(who) && each.shard == who.index;
  });
  if (!expected) return breach(name_of(who) + ": " + status.error().message);
  // Its connection is closed, and it joins again where the run recovers.
  note_loss(who);
  rejoin(who);
}

Load Simulation::load() const {
  Load load{.events = time_.size()};
  for (const auto& [who, server] : servers_)
    load.kept_by_shard = std::max(load.kept_by_shard, server.process->pending());
  load.kept = std::max(load.kept_by_shard, coordinator_->machine().pending());
  return load;
}

void Simulation::finish_what_is_under_way() {
  for (uint64_t events = 0; events < kEventsAfterEnd && breach_.empty(); ++events) {
    if (!time_.advance()) return;
  }
}

// --- messages

Party Simulation::server_of(ShardId shard) const {
  const auto found = serving_.find(shard);
  return {found == serving_.end() ? Role::kShard : found->second, shard};
}

// Null: it is not running.
SimulatedServer* Simulation::find_server(Party who) const {
  const auto found = servers_.find(who);
  if (found == servers_.end() || !processes_.is_alive(who)) return nullptr;
  return found->second.process.get();
}

// The witness sees one incarnation of the run at a time, and the processes that take part in it.
bool Simulation::is_watched(Party who, uint64_t number) const {
  return !coordinator_->is_over() && processes_.takes_part(who, number, incarnation_);
}

// Workers, the record and the witness know a shard, whichever process serves it.
Party Simulation::seen_as(Party who) const {
  return is_server(who) && server_of(who.index) == who ? Party{Role::kShard, who.index} : who;
}

void Simulation::send_all(Party from, Outbox out) {
  for (Outgoing& message : out) send(from, std::move(message));
}

void Simulation::send(Party from, Outgoing message) {
  Party to{message.to.role, message.to.index};
  if (is_server(to) && from != kCoordinatorEnd) {
    // To the process that serves, or, from that one, to the one that stands by for it.
    to = server_of(to.index);
    if (to == from) to.role = to.role == Role::kShard ? Role::kStandby : Role::kShard;
  }
  FrameHeader& header = message.frame.header;
  size_t bytes = kControlBytes;
  SharedBuffer floats;
  if (auto* slice = std::get_if<FloatSlice>(&message.frame.payload)) {
    header.length = static_cast<uint32_t>(slice->length * bytes_of(header.number_type));
    bytes = kHeaderBytes + header.length;
    if (from.role == Role::kWorker) floats = copy_gradient(to, *slice, header.number_type);
  }
  const Duration extra = extra_delay(from, to, header);
  // What a shard says to the coordinator was shown when it was said.
  const bool shown = witness_ != nullptr && is_watched(from, processes_.number(from)) &&
                     header.type != FrameType::kReplica &&
                     !(is_server(from) && to.role == Role::kCoordinator);
  if (shown) witness_->on_sent(seen_as(from), message, time_.now());
  // The shard adds into what it is given: nothing else may hold it.
  if (floats) message.frame.payload = std::monostate();
  const TimePoint arrival = network_.arrival(time_.now(), from, to, message.to.lane, bytes, extra);
  time_.plan(arrival, [this, from, from_number = processes_.number(from), to,
                       to_number = processes_.reached_from(from, to), message = std::move(message),
                       floats = std::move(floats)]() mutable {
    deliver(from, from_number, to, to_number, message, std::move(floats));
  });
}

// The buffer will be written to while this is under way: what is sent is what is there now, and it
// goes straight into a buffer of the shard's.
SharedBuffer Simulation::copy_gradient(Party to, FloatSlice& slice, NumberType type) {
  SharedBuffer floats = servers_.at(to).process->pool().take(slice.length);
  const auto values = slice.span();
  if (type == NumberType::kFloat32) {
    std::copy(values.begin(), values.end(), floats->data());
  } else {
    halves_.resize(values.size());
    narrow(type, values, halves_);
    widen(type, halves_, floats->span());
  }
  slice.buffer = floats;
  slice.offset = 0;
  return floats;
}

Duration Simulation::extra_delay(Party from, Party to, const FrameHeader& header) {
  Duration extra{};
  if (header.type == FrameType::kParameters && is_server(from)) {
    for (const SlowShard& slow : settings_.scenario.slow_shards) {
      if (slow.shard && *slow.shard != from.index) continue;
      // Whole answers are slow: all blocks of a shard for one pull have the same delay.
      const uint64_t luck = draw({settings_.seed, static_cast<uint64_t>(Purpose::kFaults),
                                  from.index, to.index, header.step});
      if (unit_interval(luck) < slow.share) extra += slow.delay;
    }
  }
  if (const auto& slow = settings_.scenario.slow_coordinator; slow && from == kCoordinatorEnd) {
    const uint64_t luck =
        draw({settings_.seed, static_cast<uint64_t>(Purpose::kFaults), coordinator_said_++});
    if (unit_interval(luck) < slow->share) extra += slow->delay;
  }
  return extra;
}

void Simulation::deliver(Party from, uint64_t from_number, Party to, uint64_t to_number,
                         const Outgoing& message, SharedBuffer floats) {
  if (!processes_.delivers(from, from_number, to, to_number)) return;
  if (const SimulatedServer* const server = find_server(to); server && server->hangs()) {
    // In the order in which it would have come.
    return time_.plan(
        server->stalled_until() + Duration(1),
        [this, from, from_number, to, to_number, message, floats = std::move(floats)]() mutable {
          deliver(from, from_number, to, to_number, message, std::move(floats));
        });
  }
  const bool to_server = is_server(to) || to.role == Role::kCoordinator;
  const bool shown =
      witness_ != nullptr && is_watched(from, from_number) && is_watched(to, to_number);
  if (to_server && shown && !is_server(from) && (!is_server(to) || server_of(to.index) == to))
    witness_->on_received(seen_as(from), message, time_.now());
  if (is_server(to)) return deliver_to_server(to, from, message, std::move(floats));
  if (to.role == Role::kCoordinator) return deliver_to_coordinator(from, message);
  deliver_to_member(to, from, message);
}

void Simulation::deliver_to_coordinator(Party from, const Outgoing& message) {
  const Control& control = *control_in(message);
  Status status = done();
  const auto deliver_once = [&] {
    with_coordinator([&](Coordinator& machine, CoordinatorOutput& out) {
      status = machine.on_message(from.role, from.index, control, time_.now(), out);
    });
    refuse(from, status);
  };
  deliver_once();
  const auto* closed = std::get_if<StepClosed>(&control);
  if (closed == nullptr || !status) return;
  const auto is_this = [&](const RepeatedClosing& each) {
    return each.shard == from.index && each.step == closed->step;
  };
  if (std::erase_if(repeated_closings_, is_this) > 0) deliver_once();
}

void Simulation::deliver_to_server(Party to, Party from, const Outgoing& message,
                                   SharedBuffer floats) {
  SimulatedServer& server = *find_server(to);
  const Control* const control = control_in(message);
  if (from.role == Role::kCoordinator) {
    if (control != nullptr) refuse(from, from_coordinator(server, to, *control));
    return;
  }
  if (is_server(from)) {
    return refuse(
        from, server.has_plan() ? from_standby(server, to, message) : to_standby(server, message));
  }
  const WorkerId sender = from.role == Role::kEvaluator ? kEvaluator : from.index;
  if (control != nullptr) {
    if (const auto* rate = std::get_if<LearningRate>(control))
      refuse(from, server.on_rate(sender, *rate));
    return;
  }
  refuse(from, server.on_frame(sender, message.frame.header, std::move(floats)));
}

Status Simulation::from_coordinator(SimulatedServer& server, Party self, const Control& message) {
  if (const auto* plan = std::get_if<Plan>(&message)) {
    server.on_plan(*plan);
  } else if (const auto* decision = std::get_if<Decision>(&message)) {
    return server.on_decision(*decision);
  } else if (std::holds_alternative<StandBy>(message)) {
    connect(self, processes_.number(self), server_of(self.index));
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    if (farewell->again) rejoin(self);
  }
  return done();
}

Status Simulation::from_standby(SimulatedServer& server, Party self, const Outgoing& message) {
  const Control* const control = control_in(message);
  const auto* replicated = control ? std::get_if<Replicated>(control) : nullptr;
  if (replicated == nullptr) return done();
  cover_.on_replicated(self.index, replicated->version, coordinator_->machine().step());
  return server.on_replicated(*replicated);
}

Status Simulation::to_standby(SimulatedServer& server, const Outgoing& message) {
  if (const Control* const control = control_in(message)) {
    const auto* replica = std::get_if<Replica>(control);
    return replica != nullptr ? server.on_replica(*replica) : done();
  }
  const auto values = std::get<FloatSlice>(message.frame.payload).span();
  auto floats = std::make_shared<FloatBuffer>(values.size());
  std::copy(values.begin(), values.end(), floats->data());
  return server.on_replica_floats(message.frame.header, std::move(floats));
}

void Simulation::order_member(Party to, const Control& message) {
  SimulatedWorker* worker = to.role == Role::kWorker ? workers_[to.index].get() : nullptr;
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    if (worker != nullptr) worker->on_welcome(*welcome);
    if (worker == nullptr) evaluator_->on_welcome(*welcome);
    for (ShardId shard = 0; shard < settings_.coordinator.shards; ++shard)
      connect(to, processes_.number(to), server_of(shard));
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    if (farewell->again) return rejoin(to);
    const bool completed = farewell->outcome == RunOutcome::kCompleted;
    if (worker == nullptr) {
      evaluator_->on_over();
    } else if (completed) {
      worker->on_completed();
    } else {
      worker->on_over();
    }
  } else if (const auto* share = std::get_if<Share>(&message); share && worker != nullptr) {
    worker->on_share(*share);
  } else if (const auto* pull = std::get_if<PullShare>(&message); pull && worker != nullptr) {
    worker->on_pull_share(*pull);
  }
}

void Simulation::deliver_to_member(Party to, Party from, const Outgoing& message) {
  const FrameHeader& header = message.frame.header;
  const Control* const control = control_in(message);
  SimulatedWorker* worker = to.role == Role::kWorker ? workers_[to.index].get() : nullptr;
  if (from.role == Role::kCoordinator) {
    if (control != nullptr) return order_member(to, *control);
    if (header.type == FrameType::kStop && worker != nullptr) worker->on_stop(header.step);
    return;
  }
  const auto* slice = std::get_if<FloatSlice>(&message.frame.payload);
  const std::span<const float> floats = slice != nullptr ? slice->span() : std::span<const float>();
  const bool connected = control != nullptr && std::holds_alternative<Connected>(*control);
  if (worker == nullptr) {
    if (connected) evaluator_->on_connected(from.index);
    if (control == nullptr) evaluator_->on_frame(header, floats);
    return;
  }
  if (connected) return worker->on_connected(from.index);
  if (control != nullptr) {
    if (std::holds_alternative<WantInitial>(*control)) worker->on_want_initial(from.index);
    return;
  }
  const Status status = worker->on_frame(from.index, header, floats);
  if (!status) breach(name_of(to) + ": " + status.error().message);
}

}  // namespace drover
