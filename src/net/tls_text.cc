#include "net/tls_text.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace drover {

std::string openssl_text(unsigned long code) {
  if (code == 0) return "unknown trouble";
#ifdef ERR_SYSTEM_ERROR
  if (ERR_SYSTEM_ERROR(code)) return std::strerror(ERR_GET_REASON(code));
#endif
  const char* const reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "error " + std::to_string(code);
}

std::string text_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return "an unknown day";
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

std::string explain_certificate(long result, const X509* certificate) {
  switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "the peer's certificate expired on " +
             text_of(certificate != nullptr ? X509_get0_notAfter(certificate) : nullptr) +
             ": make new ones with drover keys make, and bring them to every machine";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the peer's certificate is not valid before " +
             text_of(certificate != nullptr ? X509_get0_notBefore(certificate) : nullptr) +
             ": is this machine's clock right?";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "the peer's certificate is signed by another authority than ca.pem: all "
             "processes "
             "of a run need files of one `drover keys make`";
    default:
      return std::string("the peer's certificate is invalid: ") +
             X509_verify_cert_error_string(result);
  }
}

}  // namespace drover
