#include "net/tls_keys.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/ip/address.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include "core/check.h"
#include "net/descriptor.h"
#include "net/tls_text.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* each) const {
    Free(each);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;

constexpr long kDaySeconds = 24L * 60 * 60;
// Tolerates clocks that differ between machines.
constexpr long kEarlierSeconds = 60L * 60;

Key make_key() {
  Key key(EVP_EC_gen("P-256"));
  DROVER_CHECK(key != nullptr);
  return key;
}

void add_extension(X509* certificate, X509* issuer, int which, const std::string& value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, which, value.c_str());
  DROVER_CHECK(extension != nullptr);
  DROVER_CHECK(X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

// A certificate without signature. Null issuer: it is self-signed.
Certificate begin_certificate(const std::string& name, const Key& key, X509* issuer, int days) {
  Certificate made(X509_new());
  DROVER_CHECK(made != nullptr);
  DROVER_CHECK(X509_set_version(made.get(), X509_VERSION_3) == 1);
  std::array<unsigned char, 16> serial{};
  DROVER_CHECK(RAND_bytes(serial.data(), static_cast<int>(serial.size())) == 1);
  serial[0] &= 0x7F;
  const std::unique_ptr<BIGNUM, Freed<BN_free>> number(
      BN_bin2bn(serial.data(), static_cast<int>(serial.size()), nullptr));
  DROVER_CHECK(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(made.get())) != nullptr);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), days > 0 ? -kEarlierSeconds : -2 * kDaySeconds);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), days * kDaySeconds);
  X509_NAME* const subject = X509_get_subject_name(made.get());
  const auto* const text = reinterpret_cast<const unsigned char*>(name.c_str());
  DROVER_CHECK(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1);
  DROVER_CHECK(X509_set_issuer_name(
                   made.get(), issuer != nullptr ? X509_get_subject_name(issuer) : subject) == 1);
  DROVER_CHECK(X509_set_pubkey(made.get(), key.get()) == 1);
  return made;
}

void sign(X509* certificate, const Key& key) {
  DROVER_CHECK(X509_sign(certificate, key.get(), EVP_sha256()) > 0);
}

bool is_address(const std::string& host) {
  boost::system::error_code not_one;
  boost::asio::ip::make_address(host, not_one);
  return !not_one;
}

Result<std::string> names_of(const std::vector<std::string>& hosts) {
  std::string names;
  for (const std::string& host : hosts) {
    if (host.empty() ||
        host.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789-._:*") != std::string::npos)
      return invalid_input("'" + host + "' is not the name of a host or an address");
    names += (names.empty() ? "" : ",") + std::string(is_address(host) ? "IP:" : "DNS:") + host;
  }
  return names;
}

Status write_file(const fs::path& path, mode_t mode, const Bio& from) {
  const char* text = nullptr;
  const long size = BIO_get_mem_data(from.get(), &text);
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (file.open() && ::write(file.get(), text, static_cast<size_t>(size)) == size) return done();
  return system_error("cannot write " + path.string() + ": " + std::strerror(errno) +
                      (errno == EEXIST ? "; choose another folder" : ""));
}

Bio pem_of(X509* certificate) {
  Bio text(BIO_new(BIO_s_mem()));
  DROVER_CHECK(text != nullptr);
  DROVER_CHECK(PEM_write_bio_X509(text.get(), certificate) == 1);
  return text;
}

Bio pem_of(const Key& key) {
  Bio text(BIO_new(BIO_s_secmem()));
  DROVER_CHECK(text != nullptr);
  DROVER_CHECK(PEM_write_bio_PKCS8PrivateKey(text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                             nullptr) == 1);
  return text;
}

Result<Certificate> read_certificate(const fs::path& path) {
  ERR_clear_error();
  const Bio file(BIO_new_file(path.c_str(), "r"));
  Certificate read(file ? PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr) : nullptr);
  if (read) return read;
  return invalid_input("cannot read the certificate " + path.string() + ": " +
                       openssl_text(ERR_peek_error()));
}

std::string fingerprint_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  DROVER_CHECK(X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1);
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    if (i > 0) text += ':';
    text += {kDigits[digest.at(i) >> 4], kDigits[digest.at(i) & 15]};
  }
  return text;
}

std::vector<std::string> hosts_of(const X509* certificate) {
  std::vector<std::string> hosts;
  using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    const auto* const bytes = ASN1_STRING_get0_data(name->d.ia5);
    const auto size = static_cast<size_t>(ASN1_STRING_length(name->d.ia5));
    if (name->type == GEN_DNS) hosts.emplace_back(reinterpret_cast<const char*>(bytes), size);
    if (name->type == GEN_IPADD && size == 4) {
      boost::asio::ip::address_v4::bytes_type address;
      std::memcpy(address.data(), bytes, size);
      hosts.push_back(boost::asio::ip::address_v4(address).to_string());
    }
    if (name->type == GEN_IPADD && size == 16) {
      boost::asio::ip::address_v6::bytes_type address;
      std::memcpy(address.data(), bytes, size);
      hosts.push_back(boost::asio::ip::address_v6(address).to_string());
    }
  }
  return hosts;
}

}  // namespace

Status make_keys(const std::string& folder, const KeyRequest& request) {
  const auto names = names_of(request.hosts);
  if (!names) return names.error();
  const Key ca_key = make_key();
  const Certificate ca = begin_certificate("drover run authority", ca_key, nullptr, request.days);
  add_extension(ca.get(), ca.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(ca.get(), ca.get(), NID_key_usage, "critical,keyCertSign");
  add_extension(ca.get(), ca.get(), NID_subject_key_identifier, "hash");
  sign(ca.get(), ca_key);

  const Key key = make_key();
  const Certificate member = begin_certificate("drover run member", key, ca.get(), request.days);
  add_extension(member.get(), ca.get(), NID_basic_constraints, "critical,CA:FALSE");
  add_extension(member.get(), ca.get(), NID_key_usage, "critical,digitalSignature");
  add_extension(member.get(), ca.get(), NID_ext_key_usage, "serverAuth,clientAuth");
  add_extension(member.get(), ca.get(), NID_authority_key_identifier, "keyid");
  if (!names.value().empty())
    add_extension(member.get(), ca.get(), NID_subject_alt_name, names.value());
  sign(member.get(), ca_key);

  const fs::path into(folder);
  std::error_code trouble;
  if (!fs::is_directory(into, trouble) && ::mkdir(into.c_str(), 0700) != 0)
    return system_error("cannot make the folder " + folder + ": " + std::strerror(errno));
  for (const char* name : {"ca.pem", "cert.pem", "key.pem"}) {
    if (fs::exists(into / name, trouble)) {
      return invalid_input("there is a " + (into / name).string() +
                           " already, and keys are not overwritten; choose another folder");
    }
  }
  if (const Status made = write_file(into / "key.pem", 0600, pem_of(key)); !made) return made;
  if (const Status made = write_file(into / "ca.pem", 0644, pem_of(ca.get())); !made) return made;
  return write_file(into / "cert.pem", 0644, pem_of(member.get()));
}

Result<KeyInfo> read_keys(const std::string& folder) {
  const fs::path from(folder);
  const auto ca = read_certificate(from / "ca.pem");
  if (!ca) return ca.error();
  const auto member = read_certificate(from / "cert.pem");
  if (!member) return member.error();
  const fs::path key_path = from / "key.pem";
  ERR_clear_error();
  const Bio file(BIO_new_file(key_path.c_str(), "r"));
  const Key key(file ? PEM_read_bio_PrivateKey(file.get(), nullptr, nullptr, nullptr) : nullptr);
  if (!key) {
    return invalid_input("cannot read the key " + key_path.string() + ": " +
                         openssl_text(ERR_peek_error()));
  }
  X509* const certificate = member.value().get();
  if (X509_check_private_key(certificate, key.get()) != 1) {
    return invalid_input(key_path.string() +
                         " is not the key of cert.pem beside it; copy the files "
                         "of one `drover keys make` together");
  }
  if (X509_verify(certificate, X509_get0_pubkey(ca.value().get())) != 1) {
    return invalid_input("cert.pem in " + folder +
                         " is not signed by ca.pem beside it; copy the "
                         "files of one `drover keys make` together");
  }
  struct stat status {};
  const bool known = ::stat(key_path.c_str(), &status) == 0;
  return KeyInfo{.fingerprint = fingerprint_of(certificate),
                 .authority = fingerprint_of(ca.value().get()),
                 .hosts = hosts_of(certificate),
                 .from = text_of(X509_get0_notBefore(certificate)),
                 .until = text_of(X509_get0_notAfter(certificate)),
                 .expired = X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0,
                 .too_early = X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0,
                 .others_can_read = known && (status.st_mode & 0077) != 0};
}

}  // namespace drover
