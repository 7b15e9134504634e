#include "sim/connections.h"

#include "sim/transit.h"

namespace drover {

void Connections::connect(Party client, uint64_t number, Party server) {
  if (!world_.processes.is_current(client, number)) return;
  const TimePoint arrival =
      world_.network.arrival(world_.time.now(), client, server, Lane::kControl, kControlBytes, {});
  world_.time.plan(arrival, [this, client, number, server] {
    if (!world_.processes.is_current(client, number)) return;
    SimulatedServer* const shard = world_.find_server(server);
    const bool here = world_.processes.connected(server, client);
    if (here || shard == nullptr || !shard->has_plan()) {
      if (record_.is_over()) return;
      world_.time.plan(world_.time.now() + kRetry,
                       [this, client, number, server] { connect(client, number, server); });
      return;
    }
    world_.processes.connect(server, client);
    handlers_.on_connected(server, client);
  });
}

void Connections::close_all(Party party, uint64_t number) {
  const auto close = [&](Party server, Party client, Lane lane) {
    const bool ended = server == party;
    const uint64_t other = world_.processes.number(ended ? client : server);
    plan_close(server, client, lane, ended ? number : other, ended ? other : number, ended);
  };
  if (party == kCoordinatorParty) {
    for (const Party client : world_.processes.clients_of(party))
      close(party, client, Lane::kControl);
    return;
  }
  close(kCoordinatorParty, party, Lane::kControl);
  if (is_server(party)) {
    for (const Party server : world_.processes.servers_of(party)) {
      if (server != kCoordinatorParty) close(server, party, Lane::kBulk);
    }
  } else {
    for (ShardId shard = 0; shard < world_.settings.coordinator.shards; ++shard) {
      // The process that serves now may not be the one that it is connected to.
      const Party standby{Role::kStandby, shard};
      const Party server =
          world_.processes.connected(standby, party) ? standby : Party{Role::kShard, shard};
      for (const Lane lane : {Lane::kControl, Lane::kBulk}) close(server, party, lane);
    }
  }
  if (!is_server(party)) return;
  for (const Party client : world_.processes.clients_of(party))
    close(party, client, Lane::kControl);
}

void Connections::plan_close(Party server, Party client, Lane lane, uint64_t server_number,
                             uint64_t client_number, bool server_ended) {
  const Party from = server_ended ? server : client;
  const Party to = server_ended ? client : server;
  const TimePoint arrival = world_.network.arrival(world_.time.now(), from, to, lane, 0, {});
  world_.time.plan(arrival, [this, server, client, server_number, client_number, server_ended] {
    if (!world_.processes.connected(server, server_number, client, client_number)) return;
    world_.processes.disconnect(server, client);
    if (server_ended) {
      if (world_.processes.is_current(client, client_number))
        handlers_.on_server_lost(server, client);
    } else if (world_.processes.is_current(server, server_number)) {
      handlers_.on_client_lost(server, client);
    }
  });
}

}  // namespace drover
