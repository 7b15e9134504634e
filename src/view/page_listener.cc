#include "view/page_listener.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "view/request.h"

namespace drover {
namespace {

using boost::asio::ip::tcp;

std::string as_host(const boost::asio::ip::address& address) {
  if (address.is_unspecified()) {  // all addresses of this machine: use its host name
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) == 0) return name.data();
  }
  return address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
}

Result<boost::asio::ip::address> address_of(std::string host) {
  if (host == "localhost") host = "127.0.0.1";
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  boost::system::error_code trouble;
  const auto address = boost::asio::ip::make_address(host, trouble);
  if (trouble) {
    return invalid_input(fmt::format(
        "cannot serve the dashboard on '{}': not a numeric address such as 127.0.0.1 or 0.0.0.0",
        host));
  }
  return address;
}

}  // namespace

Result<PageListener> PageListener::open(const PageAddress& address, std::string_view flag) {
  const auto host = address_of(address.host);
  if (!host) return host.error();
  if (!address.token.empty()) {
    if (const Status status = check_token(address.token); !status) return status.error();
  } else if (!host.value().is_loopback()) {
    return invalid_input(fmt::format(
        "cannot serve the dashboard on {} without a token: other machines can reach this address. "
        "Set one with --token (openssl rand -hex 16 generates one)",
        address.host));
  }
  boost::asio::io_context loop(1);
  tcp::acceptor acceptor(loop);
  const tcp::endpoint endpoint(host.value(), address.port);
  boost::system::error_code trouble;
  acceptor.open(endpoint.protocol(), trouble);
  if (!trouble) acceptor.set_option(tcp::acceptor::reuse_address(true), trouble);
  if (!trouble) acceptor.bind(endpoint, trouble);
  if (!trouble) acceptor.listen(tcp::acceptor::max_listen_connections, trouble);
  if (trouble == boost::asio::error::address_in_use) {
    return invalid_input(
        fmt::format("cannot serve the dashboard on {} port {}: the port is in use; choose another "
                    "with {} PORT, or any free port with {} 0",
                    address.host, address.port, flag, flag));
  }
  if (trouble) {
    return system_error(
        fmt::format("cannot serve the dashboard on {} port {}: {}; choose another port with {}",
                    address.host, address.port, trouble.message(), flag));
  }
  PageListener listener;
  listener.port_ = acceptor.local_endpoint().port();
  listener.token_ = address.token;
  listener.url_ = fmt::format("http://{}:{}/{}", as_host(host.value()), listener.port_,
                              address.token.empty() ? "" : "?token=" + address.token);
  listener.fd_ = acceptor.release();
  return listener;
}

PageListener::~PageListener() { close(); }

PageListener::PageListener(PageListener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      port_(other.port_),
      token_(std::move(other.token_)),
      url_(std::move(other.url_)) {}

PageListener& PageListener::operator=(PageListener&& other) noexcept {
  if (this == &other) return *this;
  close();
  fd_ = std::exchange(other.fd_, -1);
  port_ = other.port_;
  token_ = std::move(other.token_);
  url_ = std::move(other.url_);
  return *this;
}

int PageListener::release() { return std::exchange(fd_, -1); }

void PageListener::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace drover
