#include "sim/incarnations.h"

#include <algorithm>

namespace drover {
namespace {

constexpr Duration kTick = std::chrono::seconds(1);
// From the end of one incarnation of the coordinator to the beginning of the next.
constexpr Duration kCoordinatorRestart = std::chrono::milliseconds(50);
// How long a restarted run waits for the remaining workers, once some have joined.
constexpr Duration kReturnTimeout = std::chrono::seconds(15);
// A shard that hangs for longer may miss the time in which its kept parameters can be used.
constexpr Duration kStallMax = std::chrono::seconds(4);

}  // namespace

void Incarnations::begin(const CoordinatorSettings& settings) {
  ++world_.incarnation;
  world_.processes.start(kCoordinatorParty);
  world_.processes.join(kCoordinatorParty, world_.incarnation);
  if (world_.coordinator) world_.retired.emplace_back(std::move(world_.coordinator));
  training_ = false;
  world_.serving.clear();
  cover_.restart(settings.resume ? settings.resume->step : 0);
  world_.coordinator = std::make_unique<SimulatedCoordinator>(
      settings, handlers_.make_policy(), world_.time, world_.disk,
      [this](CoordinatorOutput out) { handlers_.carry_out(std::move(out)); },
      [this](const CheckpointReady& checkpoint) {
        if (world_.witness != nullptr)
          world_.witness->on_checkpoint(checkpoint, world_.disk.parts_of(checkpoint.version),
                                        world_.time.now());
      });
  world_.time.plan(world_.time.now() + kTick,
                   [this, incarnation = world_.incarnation] { tick(incarnation); });
}

void Incarnations::on_step_opened() {
  training_ = true;
  covered_ = false;
}

void Incarnations::on_restart_announced() {
  const std::optional<ResumeFrom> committed = world_.coordinator->machine().committed();
  world_.coordinator->on_over();
  const uint64_t number = world_.processes.number(kCoordinatorParty);
  connections_.close_all(kCoordinatorParty, number);
  world_.processes.end(kCoordinatorParty, false);
  restart(committed);
}

CoordinatorSettings Incarnations::next_settings(const std::optional<ResumeFrom>& committed) const {
  CoordinatorSettings next = world_.settings.coordinator;
  if (committed) {
    next.resume = committed;
  } else if (const CheckpointReady* const newest = world_.disk.newest_before(next.steps)) {
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
  next.return_timeout = kReturnTimeout;
  next.before = world_.settings.coordinator.before + world_.time.now() + kCoordinatorRestart;
  next.incarnation = world_.incarnation + 1;
  return next;
}

void Incarnations::restart(const std::optional<ResumeFrom>& committed) {
  const CoordinatorSettings next = next_settings(committed);
  const Version version = next.resume ? next.resume->step : 0;
  if (!committed) world_.disk.set_aside_after(version);
  if (world_.witness != nullptr)
    world_.witness->on_restart(
        {.version = version, .from_memory = committed.has_value(), .covered_by_standby = covered_},
        world_.time.now());
  // The coordinator waits for shards that have kept the parameters, but in some scenarios messages
  // take longer than that.
  const Scenario& scenario = world_.settings.scenario;
  covered_ = covered_ && !scenario.slow_coordinator && scenario.partitions.empty() &&
             std::none_of(scenario.stalls.begin(), scenario.stalls.end(),
                          [](const Stall& stall) { return stall.length > kStallMax; });
  if (handlers_.restarted) record_.check(handlers_.restarted(version));
  world_.time.plan(world_.time.now() + kCoordinatorRestart, [this, next] {
    if (!record_.is_over()) begin(next);
  });
}

void Incarnations::on_coordinator_lost(Duration back) {
  if (!world_.settings.coordinator.recovers)
    return record_.end({.outcome = RunOutcome::kFailed,
                        .cause = EndCause::kServerLost,
                        .reason = "lost the coordinator: the process was killed"});
  world_.time.plan(world_.time.now() + back, [this] {
    if (!record_.is_over()) restart(std::nullopt);
  });
}

// The coordinator continues without members that do not join in time. Once training has begun there
// is nothing to time.
void Incarnations::tick(uint64_t incarnation) {
  if (training_ || incarnation != world_.incarnation || world_.coordinator->is_over() ||
      record_.is_over())
    return;
  world_.with_coordinator([&](Coordinator& machine, CoordinatorOutput& out) {
    machine.on_tick(world_.time.now(), out);
  });
  world_.time.plan(world_.time.now() + kTick, [this, incarnation] { tick(incarnation); });
}

// If this is the first server that is lost, and the other process for the shard has every step that
// the coordinator knows of, no step may be lost.
void Incarnations::note_loss(Party party) {
  const Party other{party.role == Role::kShard ? Role::kStandby : Role::kShard, party.index};
  covered_ = false;
  // The loss of a standby that serves no shard does not matter.
  if (is_server(party) && world_.server_of(party.index) != party) return;
  ++server_losses_;
  if (server_losses_ > 1 || !is_server(party)) return;
  const bool connected = world_.processes.is_alive(other) &&
                         world_.processes.connected(party, world_.processes.number(party), other,
                                                    world_.processes.number(other));
  const Step open = world_.coordinator->machine().step();
  covered_ =
      connected && cover_.covers(party.index, open) && open < world_.settings.coordinator.steps;
}

}  // namespace drover
