// A model is read back unchanged, and invalid files are refused with a reason.
#include "forecast/learned/model_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "core/test_text.h"
#include "forecast/learned/random_model.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::Ne;
using ::testing::Not;

ModelShape small_shape(Emission emission) {
  return {.emission = emission,
          .workers = 3,
          .latent = 2,
          .window = 2,
          .rnn = 2,
          .transition = 2,
          .embedding = 1,
          .pooled_hidden = 2,
          .pooled = 2,
          .worker_hidden = 2,
          .components = 2,
          .emission_hidden = 2};
}

ModelWeights small_model(Emission emission) {
  ModelWeights weights = random_model(small_shape(emission), 1);
  weights.note = {
      .seed = ~uint64_t{7}, .steps = 1000, .held_out_elbo = -0.25, .cut_short_share = 0.125};
  return weights;
}

constexpr Emission kAll[] = {Emission::kShared, Emission::kWorkers, Emission::kSorted};

// Replaces bytes and updates the checksum, as a faulty program would.
template <typename T>
std::string with(std::string bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
  const auto crc = static_cast<uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size() - 4));
  std::memcpy(bytes.data() + bytes.size() - 4, &crc, 4);
  return bytes;
}

std::string refusal(std::string_view bytes) {
  const Result<ModelWeights> result = decode_model(bytes, "m.drover");
  if (result) return "";
  EXPECT_THAT(result.error(), is_error(ErrorKind::kInvalidInput, "m.drover"));
  return result.error().message;
}

TEST(ModelFile, RoundTrips) {
  for (const Emission emission : kAll) {
    const ModelWeights weights = small_model(emission);
    const Result<ModelWeights> back = decode_model(encode_model(weights), "m");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_TRUE(back.value() == weights) << name_of(emission);
  }
}

TEST(ModelFile, IsPortable) {
  const std::string bytes = encode_model(small_model(Emission::kShared));
  EXPECT_EQ(bytes.substr(0, 12), std::string("\x93"
                                             "DROVER\n\x01\0\0\0",
                                             12));
  EXPECT_EQ(static_cast<unsigned char>(bytes[12]) + 256 * static_cast<unsigned char>(bytes[13]),
            static_cast<int>(bytes.size()));
}

TEST(ModelFile, RefusesTruncatedFiles) {
  const std::string bytes = encode_model(small_model(Emission::kWorkers));
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string message = refusal(bytes.substr(0, length));
    EXPECT_NE(message, "");
    if (length > 0) {
      EXPECT_THAT(message, mentions(length));
    }
  }
}

TEST(ModelFile, DetectsEveryWrongByte) {
  for (const Emission emission : kAll) {
    const std::string good = encode_model(small_model(emission));
    for (size_t at = 0; at < good.size(); ++at) {
      for (const char flip : {char{1}, static_cast<char>(0x80), static_cast<char>(0xff)}) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ flip);
        EXPECT_NE(refusal(bad), "") << at;
      }
    }
  }
}

TEST(ModelFile, ExplainsOtherFiles) {
  const std::string other = refusal("step,w0,w1\n0,1,2\n");
  EXPECT_THAT(other, mentions("drover fit"));
  const std::string good = encode_model(small_model(Emission::kShared));
  EXPECT_THAT(refusal(with(good, 8, uint32_t{2})), mentions(2, 1)) << "written by a newer version";
  EXPECT_THAT(refusal(good + "x"), mentions(good.size() + 1, good.size()));
  std::string damaged = good;
  damaged[good.size() / 2] ^= 4;
  EXPECT_THAT(refusal(damaged), AllOf(Not(mentions("drover fit")), Not(mentions(good.size()))));
}

TEST(ModelFile, RefusesInconsistentFiles) {
  const ModelWeights weights = small_model(Emission::kWorkers);
  const std::string good = encode_model(weights);
  constexpr size_t kShape = 20;
  EXPECT_THAT(refusal(with(good, kShape, uint32_t{3})), mentions(3));
  EXPECT_THAT(refusal(with(good, kShape + 4, uint32_t{0})), mentions("workers", 0));
  EXPECT_THAT(refusal(with(good, kShape + 16, uint32_t{0xffffffff})), mentions("rnn", 4294967295));
  constexpr size_t kCount = kShape + 48 + 32;
  const std::string other_tensors = refusal(with(good, kCount, uint32_t{5}));
  EXPECT_THAT(other_tensors, AllOf(Ne(""), Not(mentions("start"))));
  EXPECT_EQ(refusal(with(good, kShape + 4, uint32_t{1'000'000})), other_tensors)
      << "without allocating";
  // The first tensor: start, 1 x 2.
  EXPECT_THAT(refusal(with(good, kCount + 4, uint32_t{0xfffffff0})), mentions("start", "1 x 2"));
  EXPECT_THAT(refusal(with(good, kCount + 8, 'S')), mentions("start", "1 x 2"));
  EXPECT_THAT(refusal(with(good, kCount + 13, uint32_t{2})), mentions("start", "1 x 2"));
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(refusal(with(good, kCount + 21, bad)),
                AllOf(mentions("start"), Not(mentions("1 x 2"))));
  }
  ModelWeights no_scale = weights;
  for (Tensor& tensor : no_scale.tensors) {
    if (tensor.name == "normal_scale") tensor.values = {0.0F};
  }
  EXPECT_THAT(refusal(encode_model(no_scale)), mentions("normal_scale"));
}

TEST(ModelFile, IsReadFromDisk) {
  const std::string folder = ::testing::TempDir();
  const std::string path = folder + "/model_file_test.model";
  const ModelWeights weights = small_model(Emission::kSorted);
  std::ofstream(path, std::ios::binary) << encode_model(weights);
  const Result<ModelWeights> back = read_model(path);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(back.value() == weights);
  std::filesystem::resize_file(path, 100);
  EXPECT_THAT(read_model(path).error(), is_error(ErrorKind::kInvalidInput, path, 100));
  std::filesystem::remove(path);
  EXPECT_THAT(read_model(path).error().message, mentions(path, std::strerror(ENOENT)));
  EXPECT_THAT(read_model(folder).error(), is_error(ErrorKind::kInvalidInput, folder, "drover fit"));
}

}  // namespace
}  // namespace drover::testing_support
