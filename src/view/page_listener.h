// PageListener: the socket that a page is served on, open before anybody serves it.
//
// So a port that is taken is known before a run starts, and the socket can go to a forked process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace drover {

inline constexpr uint16_t kPagePort = 8410;

struct PageAddress {
  std::string host = "127.0.0.1";  // numeric, or localhost
  uint16_t port = kPagePort;       // 0: any that is free
  std::string token;               // empty: none is asked for
};

class PageListener {
 public:
  // Addresses that others can reach need a token. `flag` is the one that chose the port, for the
  // message if it is taken.
  static Result<PageListener> open(const PageAddress& address, std::string_view flag);

  ~PageListener();
  PageListener(PageListener&& other) noexcept;
  PageListener& operator=(PageListener&& other) noexcept;
  PageListener(const PageListener&) = delete;
  PageListener& operator=(const PageListener&) = delete;

  // What to open in a browser, with the token.
  const std::string& url() const { return url_; }
  uint16_t port() const { return port_; }
  const std::string& token() const { return token_; }

  // The socket becomes the caller's.
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
