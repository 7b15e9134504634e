#include "sim/expected_members.h"

#include <algorithm>

namespace drover {

void ExpectedMembers::on_sent(Party from, const Outgoing& message, TimePoint now) {
  const auto* control = std::get_if<Control>(&message.frame.payload);
  if (control == nullptr) return;
  const bool to_worker = message.to.role == Role::kWorker;
  if (from.role == Role::kShard && to_worker && std::holds_alternative<Connected>(*control)) {
    AtShard& shard = at(from.index);
    shard.connected.insert(message.to.index);
    shard.asked.erase(message.to.index);
  }
  if (from.role == Role::kShard && std::holds_alternative<StepClosed>(*control)) {
    ++at(from.index).closed;
    at(from.index).opened = now;
  }
  // A worker that did not join in time is dismissed; one that leaves is no longer ready.
  if (from.role == Role::kCoordinator && to_worker && std::holds_alternative<Farewell>(*control))
    ready_.erase(message.to.index);
}

void ExpectedMembers::on_received(Party from, const Outgoing& message, TimePoint now) {
  const auto* control = std::get_if<Control>(&message.frame.payload);
  if (message.to.role == Role::kCoordinator) {
    if (from.role != Role::kWorker || control == nullptr) return;
    if (std::holds_alternative<Ready>(*control)) ready_.insert(from.index);
    if (std::holds_alternative<Farewell>(*control)) {
      ready_.erase(from.index);
      lost_.insert(from.index);
    }
    return;
  }
  AtShard& shard = at(message.to.index);
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

void ExpectedMembers::restart(Version version) {
  first_ = version;
  shards_.clear();
  ready_.clear();
}

void ExpectedMembers::on_lost(Party where, WorkerId worker) {
  if (where.role == Role::kCoordinator) {
    ready_.erase(worker);
    lost_.insert(worker);
    return;
  }
  AtShard& shard = at(where.index);
  shard.connected.erase(worker);
  shard.members.erase(worker);
  shard.asked.erase(worker);
}

}  // namespace drover
