// Addresses of this host and of others: which one to listen on, so that other hosts can reach it.
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

// Addresses of the interfaces that are up, IPv4 first.
std::vector<HostAddress> host_addresses();

// The flags --bind and --interface.
struct ListenChoice {
  std::string bind;       // an address or a name; "0.0.0.0" or "::": all; empty: not given
  std::string interface;  // empty: not given
};

struct ListenHost {
  std::string bind;      // numeric, for the socket
  std::string announce;  // numeric, for other hosts
};

// Chooses among `addresses` one to listen on that other hosts can reach. `self` is the name by
// which they know this host, `towards` a host that this one will connect to; either may be empty.
// Without a choice by the user it is the address that `self` resolves to, else the one from which
// the kernel would send to `towards`, else the first that is no loopback address.
Result<ListenHost> choose_listen_host(const ListenChoice& choice, const std::string& self,
                                      const std::string& towards,
                                      const std::vector<HostAddress>& addresses);

// All numeric addresses of a host. Blocks until the name service has answered.
Result<std::vector<std::string>> resolve_host(const std::string& host);

// "tcp:10.0.0.1:29600", with brackets where they are needed.
std::string tcp_address(const std::string& host, uint16_t port);

}  // namespace drover
