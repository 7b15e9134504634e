// Texts of OpenSSL's errors, for people.
#pragma once

#include <openssl/types.h>

#include <string>

namespace drover {

// The text of an error code.
std::string openssl_text(unsigned long code);

// "2027-01-31 12:00:00 UTC"
std::string text_of(const ASN1_TIME* time);

// Why the peer's certificate is invalid. `result` is one of X509_V_ERR_*; `certificate` may be
// null.
std::string explain_certificate(long result, const X509* certificate);

}  // namespace drover
