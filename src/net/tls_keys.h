// Keys for TLS: the authority of a run, and the certificate that its members share.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace drover {

struct KeyRequest {
  std::vector<std::string> hosts;  // names and addresses, for people to read
  int days = 30;                   // until the certificate expires
};

// Writes ca.pem, cert.pem and key.pem (readable only by the owner) into `folder`, which is created
// if necessary. The authority's key is not kept, so no other certificate can be signed with it. An
// error if a file exists already.
Status make_keys(const std::string& folder, const KeyRequest& request);

struct KeyInfo {
  std::string fingerprint;  // SHA-256 of the certificate, as openssl x509 -fingerprint writes it
  std::string authority;    // fingerprint of ca.pem
  std::vector<std::string> hosts;
  std::string from;
  std::string until;
  bool expired = false;
  bool too_early = false;        // it is not valid yet
  bool others_can_read = false;  // whether other users can read the key
};

// Reads the files of make_keys(). An error if one is missing, or if they do not match.
Result<KeyInfo> read_keys(const std::string& folder);

}  // namespace drover
