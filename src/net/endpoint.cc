#include "net/endpoint.h"

#include <netinet/in.h>
#include <sys/un.h>

#include <boost/asio/ip/network_v6.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <charconv>
#include <cstring>

namespace drover {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kTcp = "tcp:";

Result<Endpoint> parse_unix(std::string_view name, std::string_view text) {
  if (name.empty() || name.size() > sizeof(sockaddr_un{}.sun_path) - 2) {
    return invalid_input("the address '" + std::string(text) + "' needs a name of 1 to " +
                         std::to_string(sizeof(sockaddr_un{}.sun_path) - 2) +
                         " letters after 'unix:'");
  }
  // A leading zero byte makes the name abstract.
  const boost::asio::local::stream_protocol::endpoint address(std::string(1, '\0') +
                                                              std::string(name));
  return Endpoint{SocketProtocol::endpoint(address), true};
}

Result<Endpoint> parse_tcp(std::string_view rest, std::string_view text) {
  const Error malformed =
      invalid_input("the address '" + std::string(text) +
                    "' is not of the form tcp:HOST:PORT with a numeric host, such as "
                    "tcp:127.0.0.1:7000 or tcp:[::1]:7000");
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return malformed;
  std::string host(rest.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  const std::string_view digits = rest.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (problem != std::errc() || end != digits.data() + digits.size()) return malformed;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  if (error) return malformed;
  return Endpoint{SocketProtocol::endpoint(boost::asio::ip::tcp::endpoint(address, port)), false};
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text) {
  if (text.starts_with(kUnix)) return parse_unix(text.substr(kUnix.size()), text);
  if (text.starts_with(kTcp)) return parse_tcp(text.substr(kTcp.size()), text);
  return invalid_input("the address '" + std::string(text) +
                       "' begins with neither 'unix:' nor 'tcp:'");
}

namespace {

boost::asio::ip::tcp::endpoint as_tcp(const SocketProtocol::endpoint& address) {
  boost::asio::ip::tcp::endpoint tcp;
  std::memcpy(tcp.data(), address.data(), address.size());
  tcp.resize(address.size());
  return tcp;
}

}  // namespace

Location location_of(const SocketProtocol::endpoint& address) {
  const int family = address.protocol().family();
  if (family == AF_UNIX) return {.host = "this machine", .near = true};
  if (family != AF_INET && family != AF_INET6) return {.host = "nowhere", .near = false};
  boost::asio::ip::address where = as_tcp(address).address();
  if (where.is_v6() && where.to_v6().is_v4_mapped())
    where = boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, where.to_v6());
  if (where.is_v4() || where.is_loopback()) return {where.to_string(), where.is_loopback()};
  return {boost::asio::ip::make_network_v6(where.to_v6(), 64).canonical().to_string(), false};
}

std::string to_text(const SocketProtocol::endpoint& address) {
  const int family = address.protocol().family();
  if (family == AF_UNIX) {
    const auto* raw = reinterpret_cast<const sockaddr_un*>(address.data());
    const size_t length = address.size() - offsetof(sockaddr_un, sun_path);
    return std::string(kUnix) +
           (length > 1 ? std::string(raw->sun_path + 1, length - 1) : std::string());
  }
  const auto tcp = as_tcp(address);
  const std::string host = tcp.address().to_string();
  return std::string(kTcp) + (tcp.address().is_v6() ? "[" + host + "]" : host) + ":" +
         std::to_string(tcp.port());
}

}  // namespace drover
