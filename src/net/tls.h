// Tls: what this process shows to others of its run and asks of them, when they talk over TCP.
//
// TLS 1.3 only. Both ends present a certificate signed by the run's own authority; whoever has one
// is a member, whatever its name: addresses of workers are not known beforehand.
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

// A socket, and what is encrypted but has not left.
struct TlsWire {
  int socket = -1;
  std::vector<std::byte> pending;
  size_t sent = 0;  // of it
};

// One connection's encryption, on a socket that is somebody else's. The handshake happens as part
// of reading and writing.
class TlsSession {
 public:
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  enum class Progress : uint8_t {
    kSome,        // bytes() were moved
    kWaitsRead,   // until the socket can be read, then call again with the same bytes
    kWaitsWrite,  // until it can be written
    kFailed,      // see trouble()
  };
  Progress read(std::span<std::byte> into);
  // Records are collected and sent together; flush() sends the last. kSome: all have left.
  Progress write(std::span<const std::byte> from);
  Progress flush();
  size_t bytes() const { return bytes_; }
  // For people; "the connection was closed" at the end of the stream.
  const std::string& trouble() const { return trouble_; }
  // Tells the other end that nothing more comes, if that can be done at once.
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

  // From ca.pem, cert.pem and key.pem in `folder`, as `drover keys make` writes them. An error says
  // which file is missing, does not belong to the others or has expired.
  static Result<std::shared_ptr<const Tls>> load(const std::string& folder);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // For a connected socket.
  std::unique_ptr<TlsSession> session(Side side, int socket) const;

 private:
  explicit Tls(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* const context_;
};

// Whether a run may listen on `address` (net/endpoint.h): others than this machine's own need TLS,
// or the user's word that the network is trusted.
Status may_listen(const std::string& address, bool tls, bool insecure);

}  // namespace drover
