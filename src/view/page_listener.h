// PageListener: the listening socket of a dashboard, opened before the server starts.
//
// So a port in use is reported before a run starts, and a forked process can inherit the socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace drover {

inline constexpr uint16_t kPagePort = 8410;

struct PageAddress {
  std::string host = "127.0.0.1";  // numeric, or localhost
  uint16_t port = kPagePort;       // 0: any free port
  std::string token;               // empty: none is required
};

class PageListener {
 public:
  // Addresses that other machines can reach need a token. `flag` is the command-line flag that sets
  // the port, for error messages.
  static Result<PageListener> open(const PageAddress& address, std::string_view flag);

  ~PageListener();
  PageListener(PageListener&& other) noexcept;
  PageListener& operator=(PageListener&& other) noexcept;
  PageListener(const PageListener&) = delete;
  PageListener& operator=(const PageListener&) = delete;

  // The URL to open in a browser, including the token.
  const std::string& url() const { return url_; }
  uint16_t port() const { return port_; }
  const std::string& token() const { return token_; }

  // Transfers ownership of the socket to the caller.
  int release();
  void close();

 private:
  PageListener() = default;

  int fd_ = -1;
  uint16_t port_ = 0;
  std::string token_;
  std::string url_;
};

}  // namespace drover
