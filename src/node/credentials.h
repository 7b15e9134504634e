// The token and number of a run, and how members prove that they know the token without sending it.
//
// Both ends of a new connection send a nonce. The connecting end proves first that it knows the
// token, then the accepting end does (node/acceptor.h, node/introduction.h):
//   proof = HMAC-SHA256(token, role of the prover | protocol version | run | acceptor's nonce |
//                              connector's nonce)
// Nonces are fresh, so a proof cannot be replayed. The prover's role is in the proof, so an end's
// own proof cannot be sent back to it.
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
  std::shared_ptr<const Tls> tls = nullptr;  // for TCP connections; null: not encrypted
};

// Loads the TLS files of `folder`; "" means no TLS.
Status use_tls(RunKey& key, const std::string& folder);

// Run and token as one text, "<run>-<token>", and back.
std::string to_text(const RunKey& key);
Result<RunKey> parse_run_key(const std::string& text);

// The key of a token without a run number. The number is derived from a hash of the token, so all
// members compute the same one and it reveals nothing about the token.
RunKey key_of(const std::string& token);

// The nonces of one connection, kNonceBytes each.
struct Nonces {
  std::string acceptor;
  std::string connector;
};

// From the kernel's random numbers.
std::string make_nonce();

std::string prove_connector(const RunKey& key, const Nonces& nonces);
std::string prove_acceptor(const RunKey& key, const Nonces& nonces);

// Whether they are equal. Takes the same time wherever they differ.
bool same_proof(const std::string& a, const std::string& b);

}  // namespace drover
