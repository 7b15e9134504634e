// Addresses of this host and of others: which one to listen on, so that the others can reach it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace drover {

struct HostAddress {
  std::string interface;  // "eth0"
  std::string address;    // numeric
  bool loopback = false;
};

// Those of the interfaces that are up, IPv4 first.
std::vector<HostAddress> host_addresses();

// What the user said about where to listen.
struct ListenChoice {
  std::string bind;       // an address or a name; "0.0.0.0" or "::": all; empty: not said
  std::string interface;  // empty: not said
};

struct ListenHost {
  std::string bind;      // numeric, for the socket
  std::string announce;  // numeric, for the others
};

// Where to listen, for others who are on other hosts. `self` is the name by which they know this
// host, `towards` somebody whom it will talk to; either may be empty. From `addresses` alone: among
// several, the one that `self` means, then the one from which the kernel would send to `towards`,
// then the first that is no loopback address.
Result<ListenHost> choose_listen_host(const ListenChoice& choice, const std::string& self,
                                      const std::string& towards,
                                      const std::vector<HostAddress>& addresses);

// All numeric addresses of a host; waits for the name service.
Result<std::vector<std::string>> resolve_host(const std::string& host);

// "tcp:10.0.0.1:29600", with brackets where they are needed.
std::string tcp_address(const std::string& host, uint16_t port);

}  // namespace drover
