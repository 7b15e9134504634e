// Processes: which processes of a simulated run are alive, and which of them are connected. A
// process that is restarted keeps its name (Party) and gets a new number, and so does a process
// that discards its state and joins the run again. A message is sent from one process to another,
// and is lost with the connection between them.
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
  // Starts a process, and returns its number. An earlier process of that name has ended.
  uint64_t start(Party party);
  // Ends a process. `loses_messages`: its messages that have not arrived yet are lost too, as when
  // a host dies.
  void end(Party party, bool loses_messages);

  // The number of the latest process of that name; 0: there has been none.
  uint64_t number(Party party) const;
  bool is_alive(Party party) const;
  bool is_current(Party party, uint64_t number) const {
    return is_alive(party) && this->number(party) == number;
  }

  // Connects two processes. `server` is the one that accepts the connection.
  void connect(Party server, Party client);
  bool connected(Party server, Party client) const { return links_.contains({server, client}); }
  // Whether exactly these processes are connected.
  bool connected(Party server, uint64_t server_number, Party client, uint64_t client_number) const;
  void disconnect(Party server, Party client) { links_.erase({server, client}); }
  // The processes that are connected to `server`.
  std::vector<Party> clients_of(Party server) const;
  // The processes that `client` is connected to.
  std::vector<Party> servers_of(Party client) const;

  // The number of the process that a message sent now would reach; 0: there is no connection.
  uint64_t reached_from(Party from, Party to) const;
  // Whether a message between these processes can still arrive.
  bool delivers(Party from, uint64_t from_number, Party to, uint64_t to_number) const;

  // The process takes part in this incarnation of the run; 0: in none.
  void join(Party party, uint64_t incarnation) {
    processes_[party].incarnations[number(party)] = incarnation;
  }
  bool takes_part(Party party, uint64_t number, uint64_t incarnation) const;

 private:
  struct Process {
    uint64_t number = 0;
    bool alive = false;
    std::map<uint64_t, uint64_t> incarnations = {};  // by number
    std::set<uint64_t> silenced;                     // numbers whose messages are lost
  };
  struct Link {
    uint64_t server = 0;
    uint64_t client = 0;
  };

  std::map<Party, Process> processes_;
  std::map<std::pair<Party, Party>, Link> links_;  // by server and client
};

}  // namespace drover
