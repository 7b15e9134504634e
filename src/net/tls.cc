#include "net/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/check.h"
#include "net/endpoint.h"
#include "net/socket.h"
#include "net/tls_text.h"

namespace drover {
namespace {

// Bytes to read or write with one system call. Records have at most 16 KB; one record per call took
// 25 % more time in the kernel.
constexpr size_t kTogetherBytes = 64 << 10;
// In order of preference: AES is the fastest on processors with AES instructions.
constexpr const char* kCiphers =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char* kMakeNew = "make new ones with: drover keys make --out DIR";

// --- a socket for OpenSSL: its own implementation would raise SIGPIPE

TlsWire& wire_of(BIO* bio) { return *static_cast<TlsWire*>(BIO_get_data(bio)); }

bool must_wait() { return errno == EAGAIN || errno == EWOULDBLOCK; }

// Sends as much as the kernel accepts. Returns false on an error; see errno.
bool send_pending(TlsWire& wire) {
  while (wire.sent < wire.pending.size()) {
    const ssize_t count = ::send(wire.socket, wire.pending.data() + wire.sent,
                                 wire.pending.size() - wire.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    wire.sent += static_cast<size_t>(count);
  }
  wire.pending.clear();
  wire.sent = 0;
  return true;
}

int bio_write(BIO* bio, const char* from, int bytes) {
  BIO_clear_retry_flags(bio);
  TlsWire& wire = wire_of(bio);
  if (wire.pending.size() >= kTogetherBytes && !send_pending(wire)) {
    if (must_wait()) BIO_set_retry_write(bio);
    return -1;
  }
  const auto* const begin = reinterpret_cast<const std::byte*>(from);
  wire.pending.insert(wire.pending.end(), begin, begin + bytes);
  return bytes;
}

int bio_read(BIO* bio, char* into, int bytes) {
  BIO_clear_retry_flags(bio);
  ssize_t count = 0;
  do count = ::recv(wire_of(bio).socket, into, static_cast<size_t>(bytes), MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  if (count < 0 && must_wait()) BIO_set_retry_read(bio);
  if (count == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(count);
}

// OpenSSL flushes the records of handshakes and alerts itself.
long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  if (command != BIO_CTRL_FLUSH) return 0;
  BIO_clear_retry_flags(bio);
  if (send_pending(wire_of(bio))) return 1;
  if (must_wait()) BIO_set_retry_write(bio);
  return -1;
}

// Created once and never changed.
const BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "drover");
    DROVER_CHECK(made != nullptr);
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    BIO_meth_set_create(made, [](BIO* bio) {
      BIO_set_init(bio, 1);
      return 1;
    });
    return made;
  }();
  return method;
}

// --- what went wrong

std::string explain_handshake(unsigned long code) {
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return "TLS failed: " + openssl_text(code);
  switch (ERR_GET_REASON(code)) {
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
      return kConnectionClosed;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "the peer sent no certificate: give it --tls with files of the same authority";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
      return "the peer does not use TLS: give --tls to all processes of a run, or to none";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return "the peer rejects this process's certificate: it is signed by another authority than "
             "the peer's; all processes of a run need files of one `drover keys make`";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "the peer reports that this process's certificate has expired, or is not valid yet: "
             "compare "
             "the "
             "clocks, and " +
             std::string(kMakeNew);
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "the peer requires a certificate, and this process sent none";
    default:
      return "TLS failed: " + openssl_text(code);
  }
}

}  // namespace

// --- a session

TlsSession::TlsSession(ssl_st* ssl, int socket) : ssl_(ssl), wire_{.socket = socket} {
  BIO* const bio = BIO_new(socket_method());
  DROVER_CHECK(bio != nullptr);
  BIO_set_data(bio, &wire_);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_app_data(ssl_, this);
  SSL_set_verify(ssl_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, on_verified);
}

// The certificate is known only here, so the reason is recorded now.
int TlsSession::on_verified(int good, x509_store_ctx_st* chain) {
  if (good == 1) return 1;
  const auto* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
  static_cast<TlsSession*>(SSL_get_app_data(ssl))->trouble_ =
      explain_certificate(X509_STORE_CTX_get_error(chain), X509_STORE_CTX_get_current_cert(chain));
  return 0;
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

TlsSession::Progress TlsSession::read(std::span<std::byte> into) {
  ERR_clear_error();
  if (SSL_read_ex(ssl_, into.data(), into.size(), &bytes_) == 1) return Progress::kSome;
  return fail();
}

TlsSession::Progress TlsSession::write(std::span<const std::byte> from) {
  ERR_clear_error();
  if (SSL_write_ex(ssl_, from.data(), from.size(), &bytes_) == 1) return Progress::kSome;
  return fail();
}

TlsSession::Progress TlsSession::flush() {
  if (send_pending(wire_)) return Progress::kSome;
  return must_wait() ? Progress::kWaitsWrite : fail_with(std::strerror(errno));
}

TlsSession::Progress TlsSession::fail() {
  const int cause = errno;
  switch (SSL_get_error(ssl_, 0)) {
    case SSL_ERROR_WANT_READ:
      return Progress::kWaitsRead;
    case SSL_ERROR_WANT_WRITE:
      return Progress::kWaitsWrite;
    case SSL_ERROR_ZERO_RETURN:
      return fail_with(kConnectionClosed);
    case SSL_ERROR_SYSCALL:
      return fail_with(cause == 0 ? kConnectionClosed : std::strerror(cause));
    default:
      return fail_with(explain_handshake(ERR_peek_error()));
  }
}

// The first error is the cause, and it is final.
TlsSession::Progress TlsSession::fail_with(const std::string& trouble) {
  if (trouble_.empty()) trouble_ = trouble;
  return Progress::kFailed;
}

void TlsSession::close() {
  ERR_clear_error();
  if (!trouble_.empty() || SSL_is_init_finished(ssl_) == 0) return;
  SSL_shutdown(ssl_);
  send_pending(wire_);
}

// --- the context of sessions

Result<std::shared_ptr<const Tls>> Tls::load(const std::string& folder) {
  ERR_clear_error();
  SSL_CTX* const context = SSL_CTX_new(TLS_method());
  DROVER_CHECK(context != nullptr);
  std::shared_ptr<const Tls> tls(new Tls(context));
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  DROVER_CHECK(SSL_CTX_set_ciphersuites(context, kCiphers) == 1);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Connections last as long as the run, so resuming sessions has no use.
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kTogetherBytes);
  const auto file = [&](const char* name) {
    return (std::filesystem::path(folder) / name).string();
  };
  const auto trouble = [&](const std::string& path) {
    return invalid_input("cannot use " + path + " for TLS: " + openssl_text(ERR_peek_error()) +
                         "; " + kMakeNew);
  };
  const std::string ca = file("ca.pem");
  const std::string certificate = file("cert.pem");
  const std::string key = file("key.pem");
  if (SSL_CTX_load_verify_file(context, ca.c_str()) != 1) return trouble(ca);
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1)
    return trouble(certificate);
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) return trouble(key);
  X509* const own = SSL_CTX_get0_certificate(context);
  if (X509_cmp_current_time(X509_get0_notAfter(own)) < 0) {
    return invalid_input("the certificate " + certificate + " expired on " +
                         text_of(X509_get0_notAfter(own)) + "; " + kMakeNew);
  }
  if (X509_cmp_current_time(X509_get0_notBefore(own)) > 0) {
    return invalid_input("the certificate " + certificate + " is not valid before " +
                         text_of(X509_get0_notBefore(own)) + "; is this machine's clock right?");
  }
  return tls;
}

Tls::~Tls() { SSL_CTX_free(context_); }

std::unique_ptr<TlsSession> Tls::session(Side side, int socket) const {
  SSL* const ssl = SSL_new(context_);
  DROVER_CHECK(ssl != nullptr);
  side == Side::kConnects ? SSL_set_connect_state(ssl) : SSL_set_accept_state(ssl);
  return std::unique_ptr<TlsSession>(new TlsSession(ssl, socket));
}

Status may_listen(const std::string& address, bool tls, bool insecure) {
  const auto endpoint = parse_endpoint(address);
  if (!endpoint) return endpoint.error();
  if (tls || insecure || location_of(endpoint.value().address).near) return done();
  return invalid_input(
      "cannot listen on " + address +
      ": others can reach it, and without TLS they could read and change what is trained. Make "
      "keys "
      "with drover keys make --out DIR, bring DIR to every machine, and give --tls DIR; or, on a "
      "network that you trust, --insecure");
}

}  // namespace drover
