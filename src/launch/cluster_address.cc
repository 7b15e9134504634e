#include "launch/cluster_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>

#include "net/descriptor.h"

namespace drover {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

std::string numeric(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  return text.data();
}

std::string names_of(const std::vector<HostAddress>& addresses) {
  std::string names;
  for (const HostAddress& each : addresses)
    names += (names.empty() ? "" : ", ") + each.interface + " (" + each.address + ")";
  return names.empty() ? "none" : names;
}

const HostAddress* find_address(const std::vector<HostAddress>& addresses,
                                const std::string& wanted) {
  const auto found = std::find_if(addresses.begin(), addresses.end(), [&](const HostAddress& each) {
    return each.address == wanted || (each.loopback && wanted.starts_with("127."));
  });
  return found == addresses.end() ? nullptr : &*found;
}

// The address from which the kernel would send to `host`. Connecting a datagram socket sends
// nothing.
std::string source_towards(const std::string& host) {
  const auto targets = resolve_host(host);
  if (!targets) return {};
  for (const std::string& target : targets.value()) {
    sockaddr_storage address{};
    socklen_t size = 0;
    if (auto* four = reinterpret_cast<sockaddr_in*>(&address);
        ::inet_pton(AF_INET, target.c_str(), &four->sin_addr) == 1) {
      four->sin_family = AF_INET;
      four->sin_port = htons(9);
      size = sizeof(*four);
    } else if (auto* six = reinterpret_cast<sockaddr_in6*>(&address);
               ::inet_pton(AF_INET6, target.c_str(), &six->sin6_addr) == 1) {
      six->sin6_family = AF_INET6;
      six->sin6_port = htons(9);
      size = sizeof(*six);
    } else {
      continue;
    }
    const Descriptor socket(::socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket.open() ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
      continue;
    size = sizeof(address);
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0)
      return numeric(reinterpret_cast<const sockaddr*>(&address), size);
  }
  return {};
}

bool means_all(const std::string& address) { return address == "0.0.0.0" || address == "::"; }

// Whether `name` may mean this address. The name of a host often resolves to a loopback address,
// which other hosts cannot use; "localhost" and 127.0.0.1 do mean one.
bool may_mean(const HostAddress& address, const std::string& name) {
  return !address.loopback || name == "localhost" || name == "::1" || name.starts_with("127.");
}

Result<std::string> reachable_address(const std::string& self, const std::string& towards,
                                      const std::vector<HostAddress>& addresses) {
  if (!self.empty()) {
    if (const auto known = resolve_host(self)) {
      for (const std::string& each : known.value()) {
        const HostAddress* const found = find_address(addresses, each);
        if (found != nullptr && may_mean(*found, self)) return each;
      }
    }
  }
  if (!towards.empty()) {
    if (const std::string source = source_towards(towards); !source.empty()) return source;
  }
  for (const HostAddress& each : addresses) {
    if (!each.loopback) return each.address;
  }
  return invalid_input("this host has no address that other hosts can reach; its interfaces: " +
                       names_of(addresses) +
                       ". If all processes are on this host, add --bind 127.0.0.1");
}

}  // namespace

std::vector<HostAddress> host_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, FreeAddresses> owner(list);
  std::vector<HostAddress> addresses;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family ||
          (each->ifa_flags & IFF_UP) == 0)
        continue;
      // Link-local addresses cannot be used without the name of an interface.
      if (family == AF_INET6 &&
          IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr))
        continue;
      addresses.push_back(
          {each->ifa_name,
           numeric(each->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)),
           (each->ifa_flags & IFF_LOOPBACK) != 0});
    }
  }
  return addresses;
}

Result<std::vector<std::string>> resolve_host(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int trouble = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (trouble != 0) {
    return Error{ErrorKind::kDisconnected,
                 "cannot find the host '" + host + "': " + ::gai_strerror(trouble)};
  }
  const std::unique_ptr<addrinfo, FreeAddresses> owner(list);
  std::vector<std::string> addresses;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    const std::string text = numeric(each->ai_addr, each->ai_addrlen);
    if (!text.empty() && std::find(addresses.begin(), addresses.end(), text) == addresses.end())
      addresses.push_back(text);
  }
  return addresses;
}

Result<ListenHost> choose_listen_host(const ListenChoice& choice, const std::string& self,
                                      const std::string& towards,
                                      const std::vector<HostAddress>& addresses) {
  if (!choice.interface.empty()) {
    const auto found = std::find_if(addresses.begin(), addresses.end(), [&](const auto& each) {
      return each.interface == choice.interface;
    });
    if (found == addresses.end())
      return invalid_input("--interface: no interface " + choice.interface +
                           " is up and has an address; there are: " + names_of(addresses));
    if (choice.bind.empty()) return ListenHost{found->address, found->address};
    if (means_all(choice.bind)) return ListenHost{choice.bind, found->address};
    return invalid_input("--bind and --interface exclude each other; give one of them");
  }
  if (!choice.bind.empty() && !means_all(choice.bind)) {
    const auto known = resolve_host(choice.bind);
    if (!known) return invalid_input("--bind: " + known.error().message);
    for (const std::string& each : known.value()) {
      if (find_address(addresses, each) != nullptr) return ListenHost{each, each};
    }
    return invalid_input("--bind: " + choice.bind +
                         " is not an address of this host; there are: " + names_of(addresses));
  }
  const auto reachable = reachable_address(self, towards, addresses);
  if (!reachable) return reachable.error();
  return ListenHost{choice.bind.empty() ? reachable.value() : choice.bind, reachable.value()};
}

std::string tcp_address(const std::string& host, uint16_t port) {
  const bool six = host.find(':') != std::string::npos && host.front() != '[';
  return "tcp:" + (six ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace drover
