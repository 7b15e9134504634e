#include "sim/simulated_world.h"

#include <algorithm>

namespace drover {

Party SimulatedWorld::server_of(ShardId shard) const {
  const auto found = serving.find(shard);
  return {found == serving.end() ? Role::kShard : found->second, shard};
}

SimulatedServer* SimulatedWorld::find_server(Party party) const {
  const auto found = servers.find(party);
  if (found == servers.end() || !processes.is_alive(party)) return nullptr;
  return found->second.process.get();
}

bool SimulatedWorld::is_watched(Party party, uint64_t number) const {
  return !coordinator->is_over() && processes.takes_part(party, number, incarnation);
}

Party SimulatedWorld::seen_as(Party party) const {
  return is_server(party) && server_of(party.index) == party ? Party{Role::kShard, party.index}
                                                             : party;
}

Load SimulatedWorld::load() const {
  Load load{.events = time.size()};
  for (const auto& [party, server] : servers)
    load.kept_by_shard = std::max(load.kept_by_shard, server.process->pending());
  load.kept = std::max(load.kept_by_shard, coordinator->machine().pending());
  return load;
}

void SimulatedWorld::retire(Party party) {
  if (party.role == Role::kWorker) workers[party.index]->on_over();
  if (party.role == Role::kEvaluator) evaluator->on_over();
  if (is_server(party)) servers[party].process->on_over();
}

}  // namespace drover
