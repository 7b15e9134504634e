// Headers: an accepted header is encoded as the same bytes, and is within every limit.
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "fuzz/promise.h"
#include "fuzz/targets.h"
#include "wire/header.h"
#include "wire/limits.h"

namespace drover::fuzz {
namespace {

constexpr size_t kTypeAt = 5;  // behind the magic number and the version

void try_header(const HeaderBytes& bytes) {
  const auto read = decode_header(bytes);
  if (read) {
    promise(encode_header(read.value()) == bytes, "a header that is taken is written as it was");
    promise(read.value().length <= kControlBytesMax, "no payload is larger than the largest");
    promise(read.value().samples <= kSamplesMax, "no gradient has more samples than the most");
  } else {
    promise(!read.error().message.empty(), "a refusal says why");
  }
}

}  // namespace

void header(Bytes input) {
  HeaderBytes bytes{};
  std::copy_n(input.begin(), std::min(input.size(), bytes.size()), bytes.begin());
  try_header(bytes);
  // Again with the correct magic number, version and checksum.
  const HeaderBytes right = encode_header({});
  std::copy_n(right.begin(), kTypeAt, bytes.begin());
  const auto sum = static_cast<uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), kHeaderBytes - sizeof(uint32_t)));
  std::memcpy(bytes.data() + kHeaderBytes - sizeof(sum), &sum, sizeof(sum));
  try_header(bytes);
}

}  // namespace drover::fuzz
