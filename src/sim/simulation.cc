#include "sim/simulation.h"

#include <algorithm>

#include "core/chance.h"

namespace drover {
namespace {

constexpr Duration kTick = std::chrono::seconds(1);
constexpr Duration kRetry = std::chrono::milliseconds(50);
constexpr uint32_t kHelloTriesMax = 1000;
// How often somebody outside is asked whether to go on.
constexpr uint64_t kEventsPerPulse = 256;
// Everybody goes when the run has ended; this is far more than that takes.
constexpr uint64_t kEventsAfterEnd = 100'000;
// What a control message weighs on the wire, about.
constexpr size_t kControlBytes = 128;

constexpr Party kCoordinatorEnd{Role::kCoordinator, 0};
constexpr Party kEvaluatorEnd{Role::kEvaluator, 0};
constexpr Party worker_end(WorkerId worker) { return {Role::kWorker, worker}; }
constexpr Party shard_end(ShardId shard) { return {Role::kShard, shard}; }

std::string name_of(Party end) { return peer_name(end.role, end.index); }

}  // namespace

Simulation::Simulation(const SimulationSettings& settings, std::unique_ptr<Policy> policy,
                       Task& task, std::vector<RunObserver*> observers, Witness* witness)
    : settings_(settings),
      task_(task),
      observers_(std::move(observers)),
      witness_(witness),
      run_times_(settings_.scenario, settings.coordinator.workers, settings.seed),
      network_(settings_.scenario, settings.seed),
      coordinator_(settings.coordinator, std::move(policy), TimePoint{}),
      wakes_(settings.coordinator.shards),
      stalls_(settings.coordinator.shards),
      lives_(settings.coordinator.workers) {
  for (ShardId shard = 0; shard < settings.coordinator.shards; ++shard)
    shards_.push_back(std::make_unique<Shard>(shard, settings.window_bytes));
}

// --- running

Result<RunEnd> Simulation::run(const std::function<bool()>& pulse) {
  time_.plan(kTick, [this] { tick(); });
  for (ShardId shard = 0; shard < shards_.size(); ++shard) {
    const Hello hello{.role = Role::kShard,
                      .index = shard,
                      .host = "server" + std::to_string(shard),
                      .address = "shard " + std::to_string(shard)};
    with_coordinator(
        [&](CoordinatorOutput& out) { check(coordinator_.on_hello(hello, time_.now(), out)); });
  }
  if (settings_.coordinator.evaluator) {
    evaluator_ = std::make_unique<SimulatedEvaluator>(
        task_, settings_.coordinator.shards,
        [this](Outbox out) { send_all(kEvaluatorEnd, std::move(out)); });
    const Hello hello{
        .role = Role::kEvaluator, .host = "server0", .tensors = task_.layout().tensors()};
    with_coordinator(
        [&](CoordinatorOutput& out) { check(coordinator_.on_hello(hello, time_.now(), out)); });
  }
  for (WorkerId worker = 0; worker < lives_.size(); ++worker) {
    if (!settings_.scenario.joins_later(worker)) start_worker(worker);
  }
  plan_faults();

  for (uint64_t events = 0; !coordinator_.ended() && breach_.empty(); ++events) {
    if (events % kEventsPerPulse == 0 && !pulse())
      with_coordinator([&](auto& out) { coordinator_.on_interrupt(time_.now(), out); });
    if (!coordinator_.ended() && !time_.advance())
      breach("the run hangs: nothing is left to happen");
    if (witness_ != nullptr) witness_->on_load(load(), time_.now());
  }
  if (witness_ != nullptr && breach_.empty()) finish_what_is_under_way();
  if (!breach_.empty()) return Error{ErrorKind::kSystem, breach_};
  // A run that could not be recorded to its end has not completed, whatever was trained.
  if (!failure_.empty()) {
    end_.outcome = RunOutcome::kFailed;
    end_.reason = failure_;
  }
  return end_;
}

// Who does not come in time is left out; once training has begun there is nothing to time.
void Simulation::tick() {
  if (training_ || coordinator_.ended()) return;
  with_coordinator([&](CoordinatorOutput& out) { coordinator_.on_tick(time_.now(), out); });
  time_.plan(time_.now() + kTick, [this] { tick(); });
}

void Simulation::plan_faults() {
  const Scenario& scenario = settings_.scenario;
  for (const Death& death : scenario.deaths) at(death.when, [this, death] { kill(death); });
  for (const Join& join : scenario.joins)
    at(join.when, [this, worker = join.worker] { start_worker(worker); });
  for (const Stall& stall : scenario.stalls) at(stall.when, [this, &stall] { hang(stall); });
  for (const Partition& partition : scenario.partitions) {
    at(partition.when,
       [this, &partition] { network_.isolate(partition.whom, time_.now() + partition.length); });
  }
}

void Simulation::hang(const Stall& stall) {
  const ShardId id = stall.shard;
  stalls_[id] = std::max(stalls_[id], time_.now() + stall.length);
  time_.plan(stalls_[id] + Duration(1), [this, id] {
    if (hangs(id) || !shards_[id]->has_plan()) return;
    with_shard(id, [&](Shard& machine, Outbox& out) { machine.on_time(time_.now(), out); });
  });
}

void Simulation::at(const Moment& moment, std::function<void()> happen) {
  if (moment.step) {
    at_step_.emplace(*moment.step, std::move(happen));
  } else {
    time_.plan(moment.at, std::move(happen));
  }
}

// --- workers that come and go

void Simulation::start_worker(WorkerId id) {
  Life& life = lives_[id];
  if (life.alive) return;
  // What was planned for an earlier process must still find it, to find that it is over.
  if (life.worker) retired_.push_back(std::move(life.worker));
  life.alive = true;
  ++life.number;
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
          }};
  life.worker = std::make_unique<SimulatedWorker>(std::move(worker), task_, time_,
                                                  [this, id, number = life.number](Outbox out) {
                                                    if (is_current(worker_end(id), number))
                                                      send_all(worker_end(id), std::move(out));
                                                  });
  say_hello(id, life.number, 0);
}

void Simulation::say_hello(WorkerId id, uint64_t life, uint32_t tries) {
  const Party end = worker_end(id);
  const TimePoint arrival =
      network_.arrival(time_.now(), end, kCoordinatorEnd, Lane::kControl, kControlBytes, {});
  time_.plan(arrival, [this, id, life, tries, end] {
    if (!is_current(end, life) || coordinator_.ended()) return;
    Status admitted = done();
    const bool here = connected_.contains({kCoordinatorEnd, id});
    if (!here) connected_[{kCoordinatorEnd, id}] = life;
    with_coordinator([&](CoordinatorOutput& out) {
      const Hello hello{.role = Role::kWorker,
                        .index = id,
                        .host = node_name(settings_.scenario.node_of(id)),
                        .tensors = task_.layout().tensors()};
      admitted = coordinator_.on_hello(hello, time_.now(), out);
    });
    if (admitted) return;
    if (!here) connected_.erase({kCoordinatorEnd, id});
    if (tries < kHelloTriesMax) {
      // Its earlier process has not been missed yet, or there is no room now.
      time_.plan(time_.now() + kRetry, [this, id, life, tries, end] {
        if (is_current(end, life)) say_hello(id, life, tries + 1);
      });
    }
  });
}

void Simulation::connect(Party end, uint64_t life, ShardId shard) {
  if (!is_current(end, life)) return;
  const TimePoint arrival =
      network_.arrival(time_.now(), end, shard_end(shard), Lane::kControl, kControlBytes, {});
  time_.plan(arrival, [this, end, life, shard] {
    if (!is_current(end, life)) return;
    const bool is_worker = end.role == Role::kWorker;
    const bool here = is_worker && connected_.contains({shard_end(shard), end.index});
    if (here || !shards_[shard]->has_plan()) {
      time_.plan(time_.now() + kRetry, [this, end, life, shard] { connect(end, life, shard); });
      return;
    }
    if (is_worker) connected_[{shard_end(shard), end.index}] = life;
    with_shard(shard, [&](Shard& machine, Outbox& out) {
      machine.on_joined(is_worker ? end.index : kEvaluator, out);
    });
  });
}

void Simulation::kill(const Death& death) {
  Life& life = lives_[death.worker];
  if (!life.alive) return;
  life.alive = false;
  life.worker->on_over();
  if (death.loses_messages) life.silenced.insert(life.number);
  close_connections(death.worker, life.number);
}

// Each connection ends behind what was sent on it.
void Simulation::close_connections(WorkerId id, uint64_t life) {
  const Party end = worker_end(id);
  const auto close = [&](Party peer, Lane lane, auto&& lost) {
    time_.plan(network_.arrival(time_.now(), end, peer, lane, 0, {}), [this, id, life, peer, lost] {
      const auto found = connected_.find({peer, id});
      if (found == connected_.end() || found->second != life) return;
      connected_.erase(found);
      if (witness_ != nullptr) witness_->on_lost(peer, id, time_.now());
      lost();
    });
  };
  close(kCoordinatorEnd, Lane::kControl, [this, id] {
    with_coordinator([&](CoordinatorOutput& out) {
      coordinator_.on_lost(Role::kWorker, id, "the process was killed", time_.now(), out);
    });
  });
  for (ShardId shard = 0; shard < shards_.size(); ++shard) {
    for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
      close(shard_end(shard), lane, [this, id, shard] {
        with_shard(shard,
                   [&](Shard& machine, Outbox& out) { machine.on_lost(id, time_.now(), out); });
      });
    }
  }
}

// --- the machines

template <typename Work>
void Simulation::with_coordinator(Work&& work) {
  CoordinatorOutput out;
  work(out);
  send_all(kCoordinatorEnd, std::move(out.messages));
  for (const Happening& happening : out.happenings) record(happening);
  plan_review();
}

void Simulation::plan_review() {
  const auto wake = coordinator_.wake_at();
  if (!wake || review_at_ == *wake) return;
  review_at_ = *wake;
  time_.plan(std::max(*wake, time_.now()), [this, at = *wake] {
    if (review_at_ != at || coordinator_.ended()) return;
    review_at_ = TimePoint{};
    with_coordinator([&](CoordinatorOutput& out) { coordinator_.on_time(time_.now(), out); });
  });
}

template <typename Work>
void Simulation::with_shard(ShardId id, Work&& work) {
  Outbox out;
  work(*shards_[id], out);
  send_all(shard_end(id), std::move(out));
  plan_wake(id);
}

void Simulation::plan_wake(ShardId id) {
  const auto wake = shards_[id]->wake_at();
  if (!wake || wakes_[id] == *wake) return;
  wakes_[id] = *wake;
  time_.plan(std::max(*wake, time_.now()), [this, id, at = *wake] {
    if (wakes_[id] != at) return;
    wakes_[id] = TimePoint{};
    if (hangs(id)) return;  // what it missed comes first when it goes on
    with_shard(id, [&](Shard& machine, Outbox& out) { machine.on_time(time_.now(), out); });
  });
}

void Simulation::record(const Happening& happening) {
  for (RunObserver* observer : observers_) check(tell(happening, *observer));
  if (const auto* end = std::get_if<RunEnd>(&happening)) end_ = *end;
  const auto* decision = std::get_if<DecisionRecord>(&happening);
  if (decision == nullptr) return;
  training_ = true;
  const auto [first, last] = at_step_.equal_range(decision->step);
  for (auto due = first; due != last; ++due) time_.plan(time_.now(), std::move(due->second));
  at_step_.erase(first, last);
}

void Simulation::check(const Status& recorded) {
  if (recorded || !failure_.empty()) return;
  failure_ = recorded.error().message;
  with_coordinator(
      [&](CoordinatorOutput& out) { coordinator_.on_failure(failure_, time_.now(), out); });
}

void Simulation::breach(const std::string& what) {
  if (breach_.empty()) breach_ = what;
  if (witness_ != nullptr) witness_->on_breach(what, time_.now());
}

Load Simulation::load() const {
  Load load{.events = time_.size(), .kept = coordinator_.pending()};
  for (const auto& shard : shards_) load.kept = std::max(load.kept, shard->pending());
  return load;
}

void Simulation::finish_what_is_under_way() {
  for (uint64_t events = 0; events < kEventsAfterEnd && breach_.empty(); ++events) {
    if (!time_.advance()) return;
  }
}

// --- messages

uint64_t Simulation::life_of(Party end) const {
  return end.role == Role::kWorker ? lives_[end.index].number : 0;
}

// The process at the other end of the connection; 0 if there is none (any more).
uint64_t Simulation::life_behind(Party from, Party to) const {
  if (to.role != Role::kWorker) return 0;
  const auto found = connected_.find({from, to.index});
  return found == connected_.end() ? 0 : found->second;
}

bool Simulation::is_current(Party end, uint64_t life) const {
  if (end.role != Role::kWorker) return true;
  return lives_[end.index].alive && lives_[end.index].number == life;
}

void Simulation::send_all(Party from, Outbox out) {
  for (Outgoing& message : out) send(from, std::move(message));
}

void Simulation::send(Party from, Outgoing message) {
  const Party to{message.to.role, message.to.index};
  FrameHeader& header = message.frame.header;
  Duration extra{};
  size_t bytes = kControlBytes;
  SharedBuffer floats;
  if (auto* slice = std::get_if<FloatSlice>(&message.frame.payload)) {
    header.length = static_cast<uint32_t>(slice->length * bytes_of(header.number_type));
    bytes = kHeaderBytes + header.length;
    if (from.role == Role::kWorker) {
      // The buffer will be written to while this is under way: what is sent is what is there now,
      // and goes straight into a buffer of the shard's.
      floats = shards_[to.index]->pool().take(slice->length);
      const auto values = slice->span();
      if (header.number_type == NumberType::kFloat32) {
        std::copy(values.begin(), values.end(), floats->data());
      } else {
        halves_.resize(values.size());
        narrow(header.number_type, values, halves_);
        widen(header.number_type, halves_, floats->span());
      }
      slice->buffer = floats;
      slice->offset = 0;
    }
  }
  if (header.type == FrameType::kParameters && from.role == Role::kShard) {
    for (const SlowShard& slow : settings_.scenario.slow_shards) {
      if (slow.shard && *slow.shard != from.index) continue;
      // Whole answers are slow: all blocks of a shard for one pull have the same luck.
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
  if (witness_ != nullptr) witness_->on_sent(from, message, time_.now());
  // The shard adds into what it is given: nobody else may hold it.
  if (floats) message.frame.payload = std::monostate();
  const TimePoint arrival = network_.arrival(time_.now(), from, to, message.to.lane, bytes, extra);
  time_.plan(arrival, [this, from, from_life = life_of(from), to_life = life_behind(from, to),
                       message = std::move(message), floats = std::move(floats)]() mutable {
    deliver(from, from_life, to_life, message, std::move(floats));
  });
}

void Simulation::deliver(Party from, uint64_t from_life, uint64_t to_life, const Outgoing& message,
                         SharedBuffer floats) {
  const Party to{message.to.role, message.to.index};
  if (!is_current(to, to_life)) return;
  if (from.role == Role::kWorker) {
    // Not what was lost with its sender, and not what comes after its connection has ended.
    if (lives_[from.index].silenced.contains(from_life)) return;
    const auto found = connected_.find({to, from.index});
    if (found == connected_.end() || found->second != from_life) return;
  }
  if (to.role == Role::kShard && hangs(to.index)) {
    // In the order in which it would have come.
    return time_.plan(stalls_[to.index] + Duration(1), [this, from, from_life, to_life, message,
                                                        floats = std::move(floats)]() mutable {
      deliver(from, from_life, to_life, message, std::move(floats));
    });
  }
  const bool to_server = to.role == Role::kShard || to.role == Role::kCoordinator;
  if (to_server && witness_ != nullptr) witness_->on_received(from, message, time_.now());
  if (to.role == Role::kShard) return deliver_to_shard(to.index, from, message, std::move(floats));
  if (to.role != Role::kCoordinator) return deliver_to_member(to, from, message);
  const auto* control = std::get_if<Control>(&message.frame.payload);
  with_coordinator([&](CoordinatorOutput& out) {
    const Status status =
        coordinator_.on_message(from.role, from.index, *control, time_.now(), out);
    if (!status) breach(status.error().message);
  });
}

void Simulation::deliver_to_shard(ShardId id, Party from, const Outgoing& message,
                                  SharedBuffer floats) {
  const auto* control = std::get_if<Control>(&message.frame.payload);
  with_shard(id, [&](Shard& shard, Outbox& out) {
    if (from.role == Role::kCoordinator) {
      if (control == nullptr) return;
      if (const auto* plan = std::get_if<Plan>(control)) shard.on_plan(*plan);
      if (const auto* decision = std::get_if<Decision>(control))
        shard.on_decision(*decision, time_.now(), out);
      return;
    }
    const WorkerId sender = from.role == Role::kEvaluator ? kEvaluator : from.index;
    const Status status =
        shard.on_frame(sender, message.frame.header, std::move(floats), time_.now(), out);
    if (!status) breach(status.error().message);
  });
}

void Simulation::deliver_to_member(Party to, Party from, const Outgoing& message) {
  const FrameHeader& header = message.frame.header;
  const auto* control = std::get_if<Control>(&message.frame.payload);
  const auto* slice = std::get_if<FloatSlice>(&message.frame.payload);
  const std::span<const float> floats = slice != nullptr ? slice->span() : std::span<const float>();
  const bool connected = control != nullptr && std::holds_alternative<Connected>(*control);
  SimulatedWorker* worker = to.role == Role::kWorker ? lives_[to.index].worker.get() : nullptr;
  if (from.role == Role::kCoordinator) {
    const auto* welcome = control != nullptr ? std::get_if<Welcome>(control) : nullptr;
    if (welcome != nullptr) {
      if (worker != nullptr) worker->on_welcome(*welcome);
      if (worker == nullptr) evaluator_->on_welcome(*welcome);
      for (ShardId shard = 0; shard < shards_.size(); ++shard) connect(to, life_of(to), shard);
    } else if (control != nullptr && std::holds_alternative<Farewell>(*control)) {
      if (worker != nullptr) worker->on_over();
      if (worker == nullptr) evaluator_->on_over();
    } else if (header.type == FrameType::kStop && worker != nullptr) {
      worker->on_stop(header.step);
    } else if (control != nullptr && std::holds_alternative<Share>(*control) && worker != nullptr) {
      worker->on_share(std::get<Share>(*control));
    } else if (control != nullptr && std::holds_alternative<PullShare>(*control) &&
               worker != nullptr) {
      worker->on_pull_share(std::get<PullShare>(*control));
    }
    return;
  }
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
