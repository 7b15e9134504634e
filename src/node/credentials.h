// What members of a run know before they meet, and how they prove it without telling it.
//
// Both ends of a new connection send a nonce. Whoever opened it proves first that it knows the
// token, then whoever accepted it does (node/acceptor.h, node/introduction.h):
//   proof = HMAC-SHA256(token, role of the prover | protocol version | run | acceptor's nonce |
//                              connector's nonce)
// Nonces are fresh, so a recorded proof is worth nothing later; the prover's role is in it, so
// neither end's proof can be sent back to it as the other's.
#pragma once

#include <memory>
#include <string>

#include "core/ids.h"
#include "core/result.h"
#include "net/tls.h"

namespace drover {

struct RunKey {
  RunId run = 0;
  std::string token;
  std::shared_ptr<const Tls> tls = nullptr;  // for what goes over TCP; null: it is not encrypted
};

// Takes the files for TLS from this folder; "" means none.
Status use_tls(RunKey& key, const std::string& folder);

// Run and token as one text, "<run>-<token>", and back.
std::string to_text(const RunKey& key);
Result<RunKey> parse_run_key(const std::string& text);

// Of a token that does not say which run it is of: a number that everybody who has it can compute,
// and from which nobody can learn anything about it.
RunKey key_of(const std::string& token);

// Of one connection; each of kNonceBytes.
struct Nonces {
  std::string acceptor;
  std::string connector;
};

// From the kernel's chance, never the same twice.
std::string make_nonce();

std::string prove_connector(const RunKey& key, const Nonces& nonces);
std::string prove_acceptor(const RunKey& key, const Nonces& nonces);

// Equal, in time that does not depend on where they differ.
bool same_proof(const std::string& a, const std::string& b);

}  // namespace drover
