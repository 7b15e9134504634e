// Processes: which processes of a simulated run are alive, and which of them are connected.
//
// A process that ends and comes back is another process with the same name and another number; so
// is one that throws away all that it knows of the run and joins it again. A message travels from
// one process to another, and is lost with the connection between them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/network.h"

namespace drover {

class Processes {
 public:
  // Returns the number of the new process. An earlier one of that name is over.
  uint64_t start(Party who);
  // `loses_messages`: what it has sent and has not arrived yet is lost too, as when a host dies.
  void end(Party who, bool loses_messages);

  // 0: there has been none.
  uint64_t number(Party who) const;
  bool is_alive(Party who) const;
  bool is_current(Party who, uint64_t number) const {
    return is_alive(who) && this->number(who) == number;
  }

  // A connection, as the process that was connected to (`server`) sees it.
  void connect(Party server, Party client);
  bool connected(Party server, Party client) const { return links_.contains({server, client}); }
  // Of exactly these processes.
  bool connected(Party server, uint64_t server_number, Party client, uint64_t client_number) const;
  void disconnect(Party server, Party client) { links_.erase({server, client}); }
  // Those that are connected to `server`.
  std::vector<Party> clients_of(Party server) const;
  // Those that `client` is connected to.
  std::vector<Party> servers_of(Party client) const;

  // The process that a message sent now would reach; 0: there is no connection.
  uint64_t reached_from(Party from, Party to) const;
  // Whether a message between these processes can still arrive.
  bool delivers(Party from, uint64_t from_number, Party to, uint64_t to_number) const;

  // The incarnation of the run's coordinator that a process takes part under; 0: none.
  void join(Party who, uint64_t incarnation) {
    processes_[who].incarnations[number(who)] = incarnation;
  }
  bool takes_part(Party who, uint64_t number, uint64_t incarnation) const;

 private:
  struct Process {
    uint64_t number = 0;
    bool alive = false;
    std::map<uint64_t, uint64_t> incarnations = {};  // by number
    std::set<uint64_t> silenced;                     // numbers of those whose messages are lost
  };
  struct Link {
    uint64_t server = 0;
    uint64_t client = 0;
  };

  std::map<Party, Process> processes_;
  std::map<std::pair<Party, Party>, Link> links_;  // by server and client
};

}  // namespace drover
