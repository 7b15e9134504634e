// What OpenSSL has to say, in words for people.
#pragma once

#include <openssl/types.h>

#include <string>

namespace drover {

// Of an error's code.
std::string openssl_text(unsigned long code);

// "2027-01-31 12:00:00 UTC"
std::string text_of(const ASN1_TIME* time);

// Why the other end's certificate is not good; `result` is one of X509_V_ERR_*. `certificate` may
// be absent.
std::string explain_certificate(long result, const X509* certificate);

}  // namespace drover
