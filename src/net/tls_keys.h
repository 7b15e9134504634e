// Keys for TLS: an authority of a run's own, and the certificate that its members share.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace drover {

struct KeyRequest {
  std::vector<std::string> hosts;  // names and addresses, for people to read
  int days = 30;                   // until the certificate expires
};

// Writes ca.pem, cert.pem and key.pem (readable by the owner alone) into `folder`, which is made if
// need be. The authority's own key is forgotten at once, so that nobody can ever sign another
// certificate with it. Files that are there already are an error.
Status make_keys(const std::string& folder, const KeyRequest& request);

struct KeyInfo {
  std::string fingerprint;  // SHA-256 of the certificate, as openssl x509 -fingerprint writes it
  std::string authority;    // the same of ca.pem
  std::vector<std::string> hosts;
  std::string from;
  std::string until;
  bool expired = false;
  bool too_early = false;        // it is not valid yet
  bool others_can_read = false;  // the key
};

// An error if the files are not there, or do not belong together.
Result<KeyInfo> read_keys(const std::string& folder);

}  // namespace drover
