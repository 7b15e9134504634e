// Endpoint: the address of a listening socket, as text and as a socket address.
//
// Text forms: "unix:NAME" is a socket in Linux's abstract namespace, so that a killed process
// leaves no file behind. "tcp:HOST:PORT" has a numeric host ("127.0.0.1", or "[::1]").
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <string>
#include <string_view>

#include "core/result.h"

namespace drover {

using SocketProtocol = boost::asio::generic::stream_protocol;

struct Endpoint {
  SocketProtocol::endpoint address;
  bool local = true;  // a Unix socket
};

Result<Endpoint> parse_endpoint(std::string_view text);
// The location of a peer, derived from its address.
struct Location {
  std::string host;   // the address without port; for IPv6 the /64 network, which one host may own
  bool near = false;  // whether it is on this machine
};
Location location_of(const SocketProtocol::endpoint& address);

std::string to_text(const SocketProtocol::endpoint& address);

}  // namespace drover
