#include "sim/dispatcher.h"

#include <algorithm>

#include "sim/transit.h"

namespace drover {

void Dispatcher::receive(Party from, Party to, const Outgoing& message, SharedBuffer floats) {
  if (is_server(to)) return to_server(to, from, message, std::move(floats));
  if (to.role == Role::kCoordinator) return to_coordinator(from, message);
  to_member(to, from, message);
}

void Dispatcher::to_coordinator(Party from, const Outgoing& message) {
  const Control& control = *control_in(message);
  Status status = done();
  const auto deliver_once = [&] {
    world_.with_coordinator([&](Coordinator& machine, CoordinatorOutput& out) {
      status = machine.on_message(from.role, from.index, control, world_.time.now(), out);
    });
    handlers_.refuse(from, status);
  };
  deliver_once();
  const auto* closed = std::get_if<StepClosed>(&control);
  if (closed == nullptr || !status) return;
  const auto is_this = [&](const RepeatedClosing& each) {
    return each.shard == from.index && each.step == closed->step;
  };
  if (std::erase_if(repeated_closings_, is_this) > 0) deliver_once();
}

void Dispatcher::to_server(Party to, Party from, const Outgoing& message, SharedBuffer floats) {
  SimulatedServer& server = *world_.find_server(to);
  const Control* const control = control_in(message);
  if (from.role == Role::kCoordinator) {
    if (control != nullptr) handlers_.refuse(from, from_coordinator(server, to, *control));
    return;
  }
  if (is_server(from)) {
    return handlers_.refuse(
        from, server.has_plan() ? from_standby(server, to, message) : to_standby(server, message));
  }
  const WorkerId sender = from.role == Role::kEvaluator ? kEvaluator : from.index;
  if (control != nullptr) {
    if (const auto* rate = std::get_if<LearningRate>(control))
      handlers_.refuse(from, server.on_rate(sender, *rate));
    if (const auto* release = std::get_if<Release>(control)) server.on_release(*release);
    return;
  }
  handlers_.refuse(from, server.on_frame(sender, message.frame.header, std::move(floats)));
}

Status Dispatcher::from_coordinator(SimulatedServer& server, Party self, const Control& message) {
  if (const auto* plan = std::get_if<Plan>(&message)) {
    server.on_plan(*plan);
  } else if (const auto* decision = std::get_if<Decision>(&message)) {
    return server.on_decision(*decision);
  } else if (const auto* length = std::get_if<RunLength>(&message)) {
    return server.on_length(*length);
  } else if (std::holds_alternative<StandBy>(message)) {
    connections_.connect(self, world_.processes.number(self), world_.server_of(self.index));
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    if (farewell->rejoin) handlers_.rejoin(self);
  }
  return done();
}

Status Dispatcher::from_standby(SimulatedServer& server, Party self, const Outgoing& message) {
  const Control* const control = control_in(message);
  const auto* replicated = control ? std::get_if<Replicated>(control) : nullptr;
  if (replicated == nullptr) return done();
  cover_.on_replicated(self.index, replicated->version, world_.coordinator->machine().step());
  return server.on_replicated(*replicated);
}

Status Dispatcher::to_standby(SimulatedServer& server, const Outgoing& message) {
  if (const Control* const control = control_in(message)) {
    const auto* replica = std::get_if<Replica>(control);
    return replica != nullptr ? server.on_replica(*replica) : done();
  }
  const auto values = std::get<FloatSlice>(message.frame.payload).span();
  auto floats = std::make_shared<FloatBuffer>(values.size());
  std::copy(values.begin(), values.end(), floats->data());
  return server.on_replica_floats(message.frame.header, std::move(floats));
}

void Dispatcher::order_member(Party to, const Control& message) {
  SimulatedWorker* worker = to.role == Role::kWorker ? world_.workers[to.index].get() : nullptr;
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    if (worker != nullptr) worker->on_welcome(*welcome);
    if (worker == nullptr) world_.evaluator->on_welcome(*welcome);
    for (ShardId shard = 0; shard < world_.settings.coordinator.shards; ++shard)
      connections_.connect(to, world_.processes.number(to), world_.server_of(shard));
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    if (farewell->rejoin) return handlers_.rejoin(to);
    const bool completed = farewell->outcome == RunOutcome::kCompleted;
    if (worker == nullptr) {
      world_.evaluator->on_over();
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

void Dispatcher::to_member(Party to, Party from, const Outgoing& message) {
  const FrameHeader& header = message.frame.header;
  const Control* const control = control_in(message);
  SimulatedWorker* worker = to.role == Role::kWorker ? world_.workers[to.index].get() : nullptr;
  if (from.role == Role::kCoordinator) {
    if (control != nullptr) return order_member(to, *control);
    if (header.type == FrameType::kStop && worker != nullptr) worker->on_stop(header.step);
    return;
  }
  const auto* slice = std::get_if<FloatSlice>(&message.frame.payload);
  const std::span<const float> floats = slice != nullptr ? slice->span() : std::span<const float>();
  const bool connected = control != nullptr && std::holds_alternative<Connected>(*control);
  if (worker == nullptr) {
    if (connected) world_.evaluator->on_connected(from.index);
    if (control == nullptr) world_.evaluator->on_frame(header, floats);
    return;
  }
  if (connected) return worker->on_connected(from.index);
  if (control != nullptr) {
    if (std::holds_alternative<WantInitial>(*control)) worker->on_want_initial(from.index);
    return;
  }
  const Status status = worker->on_frame(from.index, header, floats);
  if (!status) record_.breach(name_of(to) + ": " + status.error().message);
}

}  // namespace drover
