#include "node/credentials.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "wire/header.h"
#include "wire/limits.h"

namespace drover {
namespace {

using Mac = std::array<unsigned char, kProofBytes>;

Mac mac_of(const std::string& token, std::string_view statement) {
  Mac mac{};
  unsigned int size = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(statement.data());
  DROVER_CHECK(HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()), bytes,
                    statement.size(), mac.data(), &size) != nullptr);
  DROVER_CHECK(size == mac.size());
  return mac;
}

std::string prove(const RunKey& key, std::string_view prover, const Nonces& nonces) {
  // Every part but the first has a fixed size, and neither role is a prefix of the other, so
  // different statements have different bytes.
  DROVER_CHECK(nonces.acceptor.size() == kNonceBytes && nonces.connector.size() == kNonceBytes);
  std::string statement(prover);
  statement += static_cast<char>(kProtocolVersion);
  for (int shift = 0; shift < 64; shift += 8) statement += static_cast<char>(key.run >> shift);
  statement += nonces.acceptor + nonces.connector;
  const Mac proof = mac_of(key.token, statement);
  return {proof.begin(), proof.end()};
}

}  // namespace

std::string to_text(const RunKey& key) { return std::to_string(key.run) + "-" + key.token; }

Result<RunKey> parse_run_key(const std::string& text) {
  RunKey key;
  const char* const end = text.data() + text.size();
  const auto [stop, trouble] = std::from_chars(text.data(), end, key.run);
  if (trouble != std::errc{} || stop == end || *stop != '-' || stop + 1 == end)
    return invalid_input("this is not a token made by drover, such as 123-abc");
  key.token.assign(stop + 1, end);
  return key;
}

RunKey key_of(const std::string& token) {
  const Mac mac = mac_of(token, "drover run");
  RunId run = 0;
  for (size_t i = 0; i < sizeof(run); ++i) run = run << 8 | mac[i];
  return {.run = run, .token = token};
}

Status use_tls(RunKey& key, const std::string& folder) {
  key.tls = nullptr;
  if (folder.empty()) return done();
  auto tls = Tls::load(folder);
  if (!tls) return tls.error();
  key.tls = std::move(tls).value();
  return done();
}

std::string make_nonce() {
  std::array<unsigned char, kNonceBytes> nonce{};
  DROVER_CHECK(RAND_bytes(nonce.data(), static_cast<int>(nonce.size())) == 1);
  return {nonce.begin(), nonce.end()};
}

std::string prove_connector(const RunKey& key, const Nonces& nonces) {
  return prove(key, "drover connector", nonces);
}

std::string prove_acceptor(const RunKey& key, const Nonces& nonces) {
  return prove(key, "drover acceptor", nonces);
}

bool same_proof(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace drover
