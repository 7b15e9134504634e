// The IDX and CIFAR-10 readers must return exactly the bytes of the files, plain or gzip, and
// report every kind of damage.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "core/test_text.h"
#include "tasks/data/readers.h"
#include "tasks/data/temp_folder.h"

namespace drover {
namespace {

std::string number(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16 & 0xff),
          static_cast<char>(value >> 8 & 0xff), static_cast<char>(value & 0xff)};
}

std::string random_bytes(std::mt19937_64& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() & 0xff);
  return bytes;
}

std::string idx_images(uint32_t count, uint32_t height, uint32_t width, const std::string& pixels) {
  return number(0x803) + number(count) + number(height) + number(width) + pixels;
}

std::string idx_labels(const std::string& labels) {
  return number(0x801) + number(static_cast<uint32_t>(labels.size())) + labels;
}

// A valid set of IDX files with three training and two test images, which tests damage.
class Idx : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    files.train_images = write("train-images", idx_images(3, 2, 4, train_pixels));
    files.train_labels = write("train-labels", idx_labels({0, 2, 1}));
    files.test_images = write("test-images", idx_images(2, 2, 4, test_pixels));
    files.test_labels = write("test-labels", idx_labels({1, 2}));
  }
  std::string write(const std::string& name, const std::string& content) const {
    return folder.write(name + GetParam(), content);
  }
  std::string error() const {
    const Result<Dataset> read = read_idx(files);
    if (read.ok()) return "";
    EXPECT_EQ(read.error().kind, ErrorKind::kInvalidInput);
    return read.error().message;
  }
  std::string path(const std::string& name) const { return folder.file(name + GetParam()); }

  std::mt19937_64 random{7};
  std::string train_pixels = random_bytes(random, 24);
  std::string test_pixels = random_bytes(random, 16);
  TempFolder folder;
  IdxFiles files;
};
INSTANTIATE_TEST_SUITE_P(PlainAndGzip, Idx, testing::Values("", ".gz"));

TEST_P(Idx, ReadsTheFiles) {
  const Result<Dataset> read = read_idx(files);
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Dataset& data = read.value();
  EXPECT_EQ(data.channels, 1u);
  EXPECT_EQ(data.height, 2u);
  EXPECT_EQ(data.width, 4u);
  EXPECT_EQ(data.classes, 3u);
  EXPECT_EQ(std::string(data.train.bytes.begin(), data.train.bytes.end()), train_pixels);
  EXPECT_EQ(std::string(data.test.bytes.begin(), data.test.bytes.end()), test_pixels);
  EXPECT_EQ(data.train.labels, (std::vector<uint32_t>{0, 2, 1}));
  EXPECT_EQ(data.test.labels, (std::vector<uint32_t>{1, 2}));
}

TEST_P(Idx, NormalizesTheTrainingPartToMeanZeroAndDeviationOne) {
  const Dataset data = read_idx(files).value();
  std::vector<float> rows(24);
  copy_rows(data, data.train, std::vector<uint64_t>{0, 1, 2}, rows);
  double sum = 0;
  double squares = 0;
  for (const float value : rows) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 24, 0.0, 1e-6);
  EXPECT_NEAR(squares / 24, 1.0, 1e-5);

  std::vector<float> one(8);
  copy_rows(data, data.train, std::vector<uint64_t>{1}, one);
  EXPECT_EQ(one, std::vector<float>(rows.begin() + 8, rows.begin() + 16));
}

TEST_P(Idx, ReportsAWrongMagicNumber) {
  write("train-images", idx_labels({0, 2, 1}));
  EXPECT_THAT(error(), mentions(path("train-images"), "0x00000801", "0x00000803"));
}

TEST_P(Idx, ReportsFewerImagesThanInTheHeader) {
  write("test-images", idx_images(2, 2, 4, test_pixels.substr(1)));
  EXPECT_THAT(error(), mentions(path("test-images"), 2, 16, 15));
}

TEST_P(Idx, ReportsMoreImagesThanInTheHeader) {
  write("test-images", idx_images(2, 2, 4, test_pixels + "x"));
  EXPECT_THAT(error(), mentions(path("test-images"), 2, 16));
}

TEST_P(Idx, RefusesAnAbsurdHeader) {
  write("train-images", idx_images(0xffffffff, 4096, 4096, train_pixels));
  EXPECT_THAT(error(), mentions(path("train-images"), 4294967295));
  write("train-images", idx_images(3, 0, 4, train_pixels));
  EXPECT_THAT(error(), mentions(path("train-images"), 0));
}

TEST_P(Idx, ReportsATruncatedHeader) {
  write("train-labels", number(0x801) + "ab");
  EXPECT_THAT(error(), mentions(path("train-labels")));
}

TEST_P(Idx, ReportsUnequalCounts) {
  write("train-labels", idx_labels({0, 1}));
  EXPECT_THAT(error(), mentions(path("train-images"), 3, path("train-labels"), 2));
}

TEST_P(Idx, ReportsALabelThatTrainingDoesNotHave) {
  write("test-labels", idx_labels({1, 3}));
  EXPECT_THAT(error(), mentions(path("test-labels"), 3, 1, 0, 2));
}

TEST_P(Idx, ReportsImagesOfAnotherSize) {
  write("test-images", idx_images(2, 4, 2, test_pixels));
  EXPECT_THAT(error(), mentions(path("test-images"), "4 x 2", "2 x 4"));
}

TEST_P(Idx, ReportsAMissingFile) {
  std::filesystem::remove(files.test_labels);
  const Result<Dataset> read = read_idx(files);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error(), is_error(ErrorKind::kSystem, files.test_labels, std::strerror(ENOENT)));
}

TEST(IdxGzip, EveryTruncationIsDetected) {
  std::mt19937_64 random(1);
  const TempFolder folder;
  const std::string pixels = random_bytes(random, 3 * 28 * 28);
  const std::string images = folder.write("images.gz", idx_images(3, 28, 28, pixels));
  const std::string labels = folder.write("labels.gz", idx_labels({0, 1, 2}));
  ASSERT_TRUE(read_idx({images, labels, images, labels}).ok());
  const std::string whole = content_of(images);
  // Without its last byte the file has all pixels, but an incomplete checksum.
  for (size_t size = whole.size() - 1; size > 0; size -= 1 + size / 20) {
    SCOPED_TRACE("cut to " + std::to_string(size));
    truncate_file(images, size);
    const Result<Dataset> read = read_idx({images, labels, images, labels});
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(read.error(), is_error(ErrorKind::kInvalidInput, images));
  }
}

TEST(IdxGzip, DamageIsDetected) {
  std::mt19937_64 random(2);
  const TempFolder folder;
  const std::string images =
      folder.write("images.gz", idx_images(3, 28, 28, random_bytes(random, 3 * 28 * 28)));
  const std::string labels = folder.write("labels.gz", idx_labels({0, 1, 2}));
  std::string bytes = content_of(images);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  std::ofstream(images, std::ios::binary) << bytes;
  const Result<Dataset> read = read_idx({images, labels, images, labels});
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error(), is_error(ErrorKind::kInvalidInput, images));
  const std::string damaged = read.error().message;
  truncate_file(images, bytes.size() / 2);
  const Result<Dataset> cut = read_idx({images, labels, images, labels});
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().message, damaged) << "the error differs from that of a truncated file";
}

class Cifar : public testing::TestWithParam<const char*> {
 protected:
  std::string batch(const std::string& labels) {
    std::string bytes;
    for (const char label : labels) bytes += label + random_bytes(random, kCifarPixels);
    return bytes;
  }
  std::string write(const std::string& name, const std::string& content) const {
    return folder.write(name + GetParam(), content);
  }
  std::mt19937_64 random{3};
  TempFolder folder;
};
INSTANTIATE_TEST_SUITE_P(PlainAndGzip, Cifar, testing::Values("", ".gz"));

TEST_P(Cifar, ReadsAnyNumberOfBatches) {
  const std::string first = batch({1, 9});
  const std::string second = batch({4});
  const std::string test = batch({0, 3, 7});
  const Result<Dataset> read =
      read_cifar10({write("data_batch_1.bin", first), write("data_batch_2.bin", second)},
                   write("test_batch.bin", test));
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Dataset& data = read.value();
  EXPECT_EQ(data.channels, 3u);
  EXPECT_EQ(data.classes, 10u);
  EXPECT_EQ(data.train.labels, (std::vector<uint32_t>{1, 9, 4}));
  EXPECT_EQ(data.test.labels, (std::vector<uint32_t>{0, 3, 7}));
  ASSERT_EQ(data.train.bytes.size(), 3 * kCifarPixels);
  EXPECT_EQ(std::string(data.train.bytes.begin() + 2 * kCifarPixels, data.train.bytes.end()),
            second.substr(1));
  EXPECT_EQ(data.mean.size(), 3u);
}

TEST_P(Cifar, ReportsTruncation) {
  const std::string whole = write("test_batch.bin", batch({0}));
  const std::string short_one =
      write("data_batch_1.bin", batch({1, 2}).substr(0, kCifarRecord + 5));
  const Result<Dataset> read = read_cifar10({short_one}, whole);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error(), is_error(ErrorKind::kInvalidInput, short_one, 1, 5, 3073));
  EXPECT_FALSE(read_cifar10({write("data_batch_1.bin", "")}, whole).ok());
}

TEST_P(Cifar, ReportsALabelOutOfRange) {
  const std::string bad = write("data_batch_1.bin", batch({1, 10}));
  const Result<Dataset> read = read_cifar10({bad}, bad);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error(), is_error(ErrorKind::kInvalidInput, bad, 10, 1, 0, 9));
}

}  // namespace
}  // namespace drover
