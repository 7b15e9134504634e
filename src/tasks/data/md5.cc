#include "tasks/data/md5.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <memory>
#include <vector>

#include "tasks/data/input_file.h"

namespace drover {

Result<std::string> md5_of_file(const std::string& path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) return file.error();
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  if (context == nullptr || EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr) != 1) {
    return system_error(fmt::format(
        "cannot check {}: this machine's OpenSSL refuses MD5 (is it in FIPS mode?)", path));
  }
  std::vector<uint8_t> piece(1 << 20);
  while (true) {
    const Result<size_t> got = file.value().read(piece);
    if (!got.ok()) return got.error();
    EVP_DigestUpdate(context.get(), piece.data(), got.value());
    if (got.value() < piece.size()) break;
  }
  std::array<uint8_t, EVP_MAX_MD_SIZE> sum{};
  unsigned length = 0;
  EVP_DigestFinal_ex(context.get(), sum.data(), &length);
  return fmt::format("{:02x}", fmt::join(sum.begin(), sum.begin() + length, ""));
}

}  // namespace drover
