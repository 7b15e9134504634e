#include "sim/attendance.h"

#include <algorithm>

namespace drover {

void Attendance::on_sent(Party from, const Outgoing& message, TimePoint now) {
  const auto* control = std::get_if<Control>(&message.frame.payload);
  if (control == nullptr) return;
  const bool to_worker = message.to.role == Role::kWorker;
  if (from.role == Role::kShard && to_worker && std::holds_alternative<Connected>(*control)) {
    AtShard& shard = shards_[from.index];
    shard.connected.insert(message.to.index);
    shard.asked.erase(message.to.index);
  }
  if (from.role == Role::kShard && std::holds_alternative<StepClosed>(*control)) {
    ++shards_[from.index].closed;
    shards_[from.index].opened = now;
  }
  // Who did not come in time is told to go.
  if (from.role == Role::kCoordinator && to_worker && std::holds_alternative<Farewell>(*control))
    ready_.erase(message.to.index);
}

void Attendance::on_received(Party from, const Outgoing& message, TimePoint now) {
  const auto* control = std::get_if<Control>(&message.frame.payload);
  if (message.to.role == Role::kCoordinator) {
    if (from.role == Role::kWorker && control != nullptr && std::holds_alternative<Ready>(*control))
      ready_.insert(from.index);
    return;
  }
  AtShard& shard = shards_[message.to.index];
  if (from.role == Role::kWorker && message.frame.header.type == FrameType::kPull)
    shard.asked[from.index] = message.frame.header.version;
  if (control == nullptr || !std::holds_alternative<Decision>(*control)) return;
  if (!shard.decision) shard.opened = now;
  const auto& decision = std::get<Decision>(*control);
  shard.decision = decision;
  shard.decided = now;
  shard.decisions[decision.step].push_back(decision);
  shard.decisions.erase(shard.decisions.begin(), shard.decisions.lower_bound(shard.closed));
  const auto& alive = shard.decision->alive;
  std::erase_if(shard.members, [&](const auto& member) {
    return std::find(alive.begin(), alive.end(), member.first) == alive.end();
  });
  for (const WorkerId worker : alive) {
    if (shard.connected.contains(worker)) shard.members.emplace(worker, shard.closed);
  }
}

void Attendance::on_lost(Party at, WorkerId worker) {
  if (at.role == Role::kCoordinator) {
    ready_.erase(worker);
    lost_.insert(worker);
    return;
  }
  AtShard& shard = shards_[at.index];
  shard.connected.erase(worker);
  shard.members.erase(worker);
  shard.asked.erase(worker);
}

}  // namespace drover
