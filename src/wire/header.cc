#include "wire/header.h"

#include <zlib.h>

#include <bit>
#include <cstring>
#include <string>

#include "wire/limits.h"

namespace drover {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire format is copied, not swapped");

constexpr uint32_t kMagic = 0x31565244;  // "DRV1"
constexpr size_t kChecksumAt = 60;
// A TLS handshake begins with the bytes 22 and 3.
constexpr uint16_t kTlsGreeting = 0x0316;

template <typename T>
void put(HeaderBytes& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

template <typename T>
T get(std::span<const std::byte, kHeaderBytes> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

uint32_t checksum(const std::byte* bytes) {
  return static_cast<uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(bytes), kChecksumAt));
}

uint32_t payload_limit(FrameType type) {
  switch (type) {
    case FrameType::kControl:
      return kControlBytesMax;
    case FrameType::kOffer:
      return kInlineBytesMax;
    case FrameType::kBlock:
    case FrameType::kParameters:
    case FrameType::kReplica:
      return kBlockBytesMax;
    default:
      return 0;
  }
}

}  // namespace

std::string_view name_of(Answer answer) {
  switch (answer) {
    case Answer::kAccepted:
      return "accepted";
    case Answer::kLate:
      return "late";
    case Answer::kNotFinite:
      return "not finite";
    case Answer::kDuplicate:
      return "duplicate";
    case Answer::kOutlier:
      return "outlier";
  }
  return "unknown";
}

HeaderBytes encode_header(const FrameHeader& header) {
  HeaderBytes bytes{};
  put(bytes, 0, kMagic);
  put(bytes, 4, kProtocolVersion);
  put(bytes, 5, static_cast<uint8_t>(header.type));
  put(bytes, 6, header.flags);
  put(bytes, 8, header.run);
  put(bytes, 16, header.step);
  put(bytes, 24, header.version);
  put(bytes, 32, header.worker);
  put(bytes, 36, header.block);
  put(bytes, 40, header.samples);
  put(bytes, 44, header.length);
  put(bytes, 48, static_cast<uint32_t>(header.answer));
  put(bytes, 52, header.place);
  put(bytes, 56, static_cast<uint8_t>(header.number_type));
  put(bytes, kChecksumAt, checksum(bytes.data()));
  return bytes;
}

Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes) {
  if (get<uint16_t>(bytes, 0) == kTlsGreeting) {
    return invalid_input(
        "the peer uses TLS, but this process does not: give --tls to all processes of a run, or to "
        "none");
  }
  if (get<uint32_t>(bytes, 0) != kMagic) {
    return invalid_input("the peer does not speak drover's protocol (unknown first bytes)");
  }
  // The version is checked before the checksum, since another version may have another header.
  const auto version = get<uint8_t>(bytes, 4);
  if (version != kProtocolVersion) {
    return invalid_input("the peer speaks protocol version " + std::to_string(version) +
                         ", this drover speaks version " + std::to_string(kProtocolVersion) +
                         "; use the same release everywhere");
  }
  if (get<uint32_t>(bytes, kChecksumAt) != checksum(bytes.data())) {
    return invalid_input("a frame's header is damaged (its checksum does not match)");
  }
  const auto type = get<uint8_t>(bytes, 5);
  if (type < static_cast<uint8_t>(FrameType::kControl) ||
      type > static_cast<uint8_t>(FrameType::kReplica)) {
    return invalid_input("a frame has the unknown type " + std::to_string(type));
  }
  const auto number_type = get<uint8_t>(bytes, 56);
  if (number_type > static_cast<uint8_t>(NumberType::kFloat16)) {
    return invalid_input("a frame has numbers of the unknown type " + std::to_string(number_type));
  }
  if ((get<uint32_t>(bytes, 56) >> 8) != 0)
    return invalid_input("a frame's header has unused bytes that are not zero");
  const auto answer = get<uint32_t>(bytes, 48);
  if (answer > static_cast<uint32_t>(Answer::kOutlier))
    return invalid_input("a frame has the unknown answer " + std::to_string(answer));
  const FrameHeader header{.type = static_cast<FrameType>(type),
                           .flags = get<uint16_t>(bytes, 6),
                           .run = get<uint64_t>(bytes, 8),
                           .step = get<uint64_t>(bytes, 16),
                           .version = get<uint64_t>(bytes, 24),
                           .worker = get<uint32_t>(bytes, 32),
                           .block = get<uint32_t>(bytes, 36),
                           .samples = get<uint32_t>(bytes, 40),
                           .length = get<uint32_t>(bytes, 44),
                           .answer = static_cast<Answer>(answer),
                           .place = get<uint32_t>(bytes, 52),
                           .number_type = static_cast<NumberType>(number_type)};
  if (header.length > payload_limit(header.type)) {
    return invalid_input("a frame of type " + std::to_string(type) + " claims a payload of " +
                         std::to_string(header.length) + " bytes, more than the limit of " +
                         std::to_string(payload_limit(header.type)));
  }
  if (header.samples > kSamplesMax) {
    return invalid_input("a frame claims " + std::to_string(header.samples) +
                         " samples, more than the limit of " + std::to_string(kSamplesMax));
  }
  return header;
}

}  // namespace drover
