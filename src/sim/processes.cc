#include "sim/processes.h"

namespace drover {

uint64_t Processes::start(Party party) {
  Process& process = processes_[party];
  process.alive = true;
  return ++process.number;
}

void Processes::end(Party party, bool loses_messages) {
  Process& process = processes_[party];
  process.alive = false;
  if (loses_messages) process.silenced.insert(process.number);
}

uint64_t Processes::number(Party party) const {
  const auto found = processes_.find(party);
  return found == processes_.end() ? 0 : found->second.number;
}

bool Processes::is_alive(Party party) const {
  const auto found = processes_.find(party);
  return found != processes_.end() && found->second.alive;
}

void Processes::connect(Party server, Party client) {
  links_[{server, client}] = {number(server), number(client)};
}

bool Processes::connected(Party server, uint64_t server_number, Party client,
                          uint64_t client_number) const {
  const auto found = links_.find({server, client});
  return found != links_.end() && found->second.server == server_number &&
         found->second.client == client_number;
}

std::vector<Party> Processes::clients_of(Party server) const {
  std::vector<Party> clients;
  for (const auto& [ends, link] : links_) {
    if (ends.first == server) clients.push_back(ends.second);
  }
  return clients;
}

std::vector<Party> Processes::servers_of(Party client) const {
  std::vector<Party> servers;
  for (const auto& [ends, link] : links_) {
    if (ends.second == client) servers.push_back(ends.first);
  }
  return servers;
}

uint64_t Processes::reached_from(Party from, Party to) const {
  if (const auto found = links_.find({from, to});
      found != links_.end() && found->second.server == number(from))
    return found->second.client;
  if (const auto found = links_.find({to, from});
      found != links_.end() && found->second.client == number(from))
    return found->second.server;
  return 0;
}

bool Processes::delivers(Party from, uint64_t from_number, Party to, uint64_t to_number) const {
  if (!is_current(to, to_number)) return false;
  const auto sender = processes_.find(from);
  if (sender != processes_.end() && sender->second.silenced.contains(from_number)) return false;
  // A server does not read messages of a connection that it knows to be closed.
  return connected(to, to_number, from, from_number) || connected(from, from_number, to, to_number);
}

bool Processes::takes_part(Party party, uint64_t number, uint64_t incarnation) const {
  const auto found = processes_.find(party);
  if (found == processes_.end()) return false;
  const auto joined = found->second.incarnations.find(number);
  return joined != found->second.incarnations.end() && joined->second == incarnation;
}

}  // namespace drover
