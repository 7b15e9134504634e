#include "sim/simulated_world.h"

#include <algorithm>

namespace drover {

Party SimulatedWorld::server_of(ShardId shard) const {
  const auto found = serving.find(shard);
  return {found == serving.end() ? Role::kShard : found->second, shard};
}

SimulatedServer* SimulatedWorld::find_server(Party who) const {
  const auto found = servers.find(who);
  if (found == servers.end() || !processes.is_alive(who)) return nullptr;
  return found->second.process.get();
}

bool SimulatedWorld::is_watched(Party who, uint64_t number) const {
  return !coordinator->is_over() && processes.takes_part(who, number, incarnation);
}

Party SimulatedWorld::seen_as(Party who) const {
  return is_server(who) && server_of(who.index) == who ? Party{Role::kShard, who.index} : who;
}

Load SimulatedWorld::load() const {
  Load load{.events = time.size()};
  for (const auto& [who, server] : servers)
    load.kept_by_shard = std::max(load.kept_by_shard, server.process->pending());
  load.kept = std::max(load.kept_by_shard, coordinator->machine().pending());
  return load;
}

void SimulatedWorld::retire(Party who) {
  if (who.role == Role::kWorker) workers[who.index]->on_over();
  if (who.role == Role::kEvaluator) evaluator->on_over();
  if (is_server(who)) servers[who].process->on_over();
}

}  // namespace drover
