// Tls: encryption and mutual authentication of TCP connections between processes of a run.
//
// TLS 1.3 only. Both ends present a certificate that is signed by the run's own authority. Names in
// certificates are not checked, since the addresses of workers are not known beforehand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

struct ssl_ctx_st;
struct ssl_st;
struct x509_store_ctx_st;

namespace drover {

// A socket, and encrypted bytes that are not sent yet.
struct TlsWire {
  int socket = -1;
  std::vector<std::byte> pending;
  size_t sent = 0;  // bytes of `pending` that are sent
};

// The encryption of one connection, on a socket that the caller owns. The handshake happens during
// the first reads and writes.
class TlsSession {
 public:
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  enum class Progress : uint8_t {
    kSome,        // bytes() were moved
    kWaitsRead,   // wait until the socket is readable, then call again with the same bytes
    kWaitsWrite,  // wait until the socket is writable, then call again with the same bytes
    kFailed,      // see trouble()
  };
  Progress read(std::span<std::byte> into);
  // Collects records and sends them together. flush() sends the rest; kSome: all are sent.
  Progress write(std::span<const std::byte> from);
  Progress flush();
  size_t bytes() const { return bytes_; }
  // The reason of kFailed; "the connection was closed" at the end of the stream.
  const std::string& trouble() const { return trouble_; }
  // Notifies the peer of the end of the stream, if that is possible without waiting.
  void close();

 private:
  friend class Tls;
  TlsSession(ssl_st* ssl, int socket);
  static int on_verified(int good, x509_store_ctx_st* chain);
  Progress fail();
  Progress fail_with(const std::string& trouble);

  ssl_st* const ssl_;
  TlsWire wire_;
  size_t bytes_ = 0;
  std::string trouble_;
};

class Tls {
 public:
  enum class Side : uint8_t { kConnects, kAccepts };

  // Loads ca.pem, cert.pem and key.pem in `folder`, as `drover keys make` writes them. The error
  // says which file is missing, does not match the others or has expired.
  static Result<std::shared_ptr<const Tls>> load(const std::string& folder);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // Starts a session on a connected socket.
  std::unique_ptr<TlsSession> session(Side side, int socket) const;

 private:
  explicit Tls(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* const context_;
};

// Whether a run may listen on `address` (net/endpoint.h). An address that other machines can reach
// needs TLS, or `insecure`: the user trusts the network.
Status may_listen(const std::string& address, bool tls, bool insecure);

}  // namespace drover
