// Endpoint: where somebody listens, as text and as a socket address.
//
// Text forms: "unix:NAME" is a socket in Linux's abstract namespace, which has no file and so
// leaves none behind when its owner is killed; "tcp:HOST:PORT" with a numeric host ("127.0.0.1",
// "::1" in brackets).
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
// Where somebody is, as far as its address tells.
struct Location {
  std::string host;   // of a neighbourhood that one person may own: for IPv6 a network of 64 bits
  bool near = false;  // on this machine
};
Location location_of(const SocketProtocol::endpoint& address);

std::string to_text(const SocketProtocol::endpoint& address);

}  // namespace drover
