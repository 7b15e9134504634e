// Files of learned models: an accepted model is written again as the same bytes.
#include <zlib.h>

#include <cstring>
#include <string>

#include "forecast/learned/model_file.h"
#include "fuzz/promise.h"
#include "fuzz/targets.h"

namespace drover::fuzz {
namespace {

constexpr size_t kLengthAt = 12;  // the position of the file's length, eight bytes
constexpr size_t kChecksumBytes = 4;

void try_model(const std::string& bytes) {
  const auto read = decode_model(bytes, "an input");
  if (read) {
    promise(encode_model(read.value()) == bytes, "a model that is taken is written as it was");
  } else {
    promise(!read.error().message.empty(), "a refusal says why");
  }
}

}  // namespace

void model(Bytes input) {
  std::string bytes(text_of(input));
  try_model(bytes);
  // Again with the correct length and checksum.
  if (bytes.size() < kLengthAt + sizeof(uint64_t) + kChecksumBytes) return;
  const uint64_t length = bytes.size();
  std::memcpy(bytes.data() + kLengthAt, &length, sizeof(length));
  const size_t before = bytes.size() - kChecksumBytes;
  const auto sum =
      static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), before));
  std::memcpy(bytes.data() + before, &sum, kChecksumBytes);
  try_model(bytes);
}

}  // namespace drover::fuzz
