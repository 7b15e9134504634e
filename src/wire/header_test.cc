// Decoding an encoded header gives the same header. Other bytes are refused.
#include "wire/header.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <random>

#include "core/test_text.h"
#include "wire/limits.h"

namespace drover {
namespace {

FrameHeader random_header(std::mt19937_64& random) {
  FrameHeader header{.type = static_cast<FrameType>(1 + random() % 10),
                     .flags = static_cast<uint16_t>(random()),
                     .run = random(),
                     .step = random(),
                     .version = random(),
                     .worker = static_cast<uint32_t>(random()),
                     .block = static_cast<uint32_t>(random()),
                     .samples = static_cast<uint32_t>(random() % kSamplesMax),
                     .length = 0,
                     .answer = static_cast<Answer>(random() % 4),
                     .place = static_cast<uint32_t>(random()),
                     .number_type = static_cast<NumberType>(random() % 3)};
  if (header.type == FrameType::kBlock)
    header.length = static_cast<uint32_t>(random() % kBlockBytesMax);
  return header;
}

TEST(FrameHeader, APullMayCountMoreBlocksThanTheLimitOfSamples) {
  // A worker receives millions of blocks in a long run, so their count has no limit.
  EXPECT_TRUE(decode_header(encode_header({.type = FrameType::kPull, .place = ~uint32_t{0}})).ok());
}

TEST(Header, IsDecodedUnchanged) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const FrameHeader header = random_header(random);
    const auto decoded = decode_header(encode_header(header));
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    ASSERT_EQ(decoded.value(), header);
  }
}

TEST(Header, RefusesEveryDamagedByte) {
  const HeaderBytes good =
      encode_header({.type = FrameType::kBlock, .run = 7, .step = 3, .length = 100});
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      HeaderBytes bad = good;
      bad[at] ^= static_cast<std::byte>(1 << bit);
      EXPECT_FALSE(decode_header(bad).ok()) << "byte " << at << " bit " << bit;
    }
  }
}

TEST(Header, ErrorsNameTheInvalidField) {
  HeaderBytes bytes{};
  EXPECT_THAT(decode_header(bytes).error(), is_error(ErrorKind::kInvalidInput, "drover"));

  bytes = encode_header({});
  bytes[4] = std::byte{9};
  EXPECT_THAT(decode_header(bytes).error(),
              is_error(ErrorKind::kInvalidInput, 9, kProtocolVersion));

  bytes = encode_header({.type = FrameType::kBlock, .length = kBlockBytesMax + 1});
  EXPECT_THAT(decode_header(bytes).error(),
              is_error(ErrorKind::kInvalidInput, kBlockBytesMax + 1, kBlockBytesMax));
}

TEST(Header, RefusesHeadersThatAreNeverEncoded) {
  HeaderBytes stray = encode_header({.type = FrameType::kPull});
  stray[58] = std::byte{1};
  const auto sum = static_cast<uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(stray.data()), kHeaderBytes - 4));
  std::memcpy(stray.data() + kHeaderBytes - 4, &sum, 4);
  EXPECT_FALSE(decode_header(stray).ok()) << "the bytes after the number type are zero";
}

TEST(Header, GivesEachTypeItsOwnLimit) {
  EXPECT_TRUE(
      decode_header(encode_header({.type = FrameType::kControl, .length = kControlBytesMax})).ok());
  EXPECT_FALSE(
      decode_header(encode_header({.type = FrameType::kControl, .length = kControlBytesMax + 1}))
          .ok());
  EXPECT_FALSE(
      decode_header(encode_header({.type = FrameType::kOffer, .length = kInlineBytesMax + 1}))
          .ok());
  EXPECT_FALSE(decode_header(encode_header({.type = FrameType::kPull, .length = 1})).ok());
}

TEST(Header, RandomBytesAreNeverAHeader) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    HeaderBytes bytes;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    ASSERT_FALSE(decode_header(bytes).ok());
  }
}

TEST(Header, DecodesEveryKnownAnswerAndNoOther) {
  for (uint32_t answer = 0; answer < 8; ++answer) {
    const FrameHeader header{.type = FrameType::kAnswer, .answer = static_cast<Answer>(answer)};
    EXPECT_EQ(decode_header(encode_header(header)).ok(), name_of(header.answer) != "unknown")
        << answer;
  }
}

}  // namespace
}  // namespace drover
