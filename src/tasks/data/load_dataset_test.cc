// load_dataset() must detect the format of a folder, and report mistyped names helpfully.
#include "tasks/data/load_dataset.h"

#include <gtest/gtest.h>

#include "core/test_text.h"
#include "tasks/data/temp_folder.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::Not;

const std::string kImages(
    "\0\0\x08\x03\0\0\0\x01\0\0\0\x01\0\0\0\x02"
    "ab",
    18);
const std::string kLabels("\0\0\x08\x01\0\0\0\x01\x01", 9);

Result<Dataset> load(const std::string& data, const std::string& data_dir = "/nonexistent") {
  TaskSpec spec;
  spec.data = data;
  spec.data_dir = data_dir;
  spec.generated_samples = 16;
  return load_dataset(spec);
}

std::string error(const std::string& data, const std::string& data_dir = "/nonexistent") {
  const Result<Dataset> loaded = load(data, data_dir);
  if (loaded.ok()) return "";
  EXPECT_EQ(loaded.error().kind, ErrorKind::kInvalidInput);
  return loaded.error().message;
}

TEST(LoadDataset, GeneratesByName) {
  EXPECT_EQ(load("generated").value().kind, DataKind::kImages);
  EXPECT_EQ(load("generated").value().name, "generated");
  EXPECT_EQ(load("generated-text").value().kind, DataKind::kText);
}

TEST(LoadDataset, FindsIdxInEitherSpelling) {
  for (const char* dash : {"-idx", ".idx"}) {
    for (const char* ending : {"", ".gz"}) {
      const TempFolder folder;
      for (const std::string part : {"train", "t10k"}) {
        folder.write(part + "-images" + dash + "3-ubyte" + ending, kImages);
        folder.write(part + "-labels" + dash + "1-ubyte" + ending, kLabels);
      }
      const Result<Dataset> loaded = load(folder.path());
      ASSERT_TRUE(loaded.ok()) << loaded.error().message;
      EXPECT_EQ(loaded.value().width, 2u);
      EXPECT_EQ(loaded.value().name, folder.path());
    }
  }
}

TEST(LoadDataset, NamesTheIdxFileThatIsMissing) {
  const TempFolder folder;
  folder.write("train-images-idx3-ubyte", kImages);
  EXPECT_THAT(error(folder.path()), mentions(folder.path(), "train-labels-idx1-ubyte"));
}

TEST(LoadDataset, FindsCifarBatches) {
  const TempFolder folder;
  folder.write("data_batch_1.bin.gz", std::string(3073, '\1'));
  EXPECT_THAT(error(folder.path()), mentions(folder.path(), "test_batch.bin"));
  folder.write("data_batch_7.bin", std::string(3073, '\2'));
  folder.write("test_batch.bin", std::string(3073, '\3'));
  const Result<Dataset> loaded = load(folder.path());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded.value().train.labels, (std::vector<uint32_t>{1, 2}));
}

TEST(LoadDataset, FindsLibsvmInAFolderOrAsAFile) {
  const TempFolder folder;
  folder.write("a9a.gz", "+1 1:1\n-1 2:1\n");
  folder.write("a9a.t", "+1 3:1\n");
  folder.write("readme", "about a9a");
  for (const std::string& path : {folder.path(), folder.file("a9a.gz")}) {
    const Result<Dataset> loaded = load(path);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(loaded.value().kind, DataKind::kRows);
    EXPECT_EQ(loaded.value().width, 3u);
    EXPECT_EQ(loaded.value().test.labels.size(), 1u);
  }
}

TEST(LoadDataset, ReadsASingleFileAsText) {
  const TempFolder folder;
  folder.write("input.txt", "All the world's a stage");
  EXPECT_EQ(load(folder.path()).value().kind, DataKind::kText);
  EXPECT_EQ(load(folder.file("input.txt")).value().kind, DataKind::kText);
}

TEST(LoadDataset, ReportsTheExpectedFilesOfAFolder) {
  const TempFolder folder;
  EXPECT_THAT(error(folder.path()), mentions(folder.path(), "data_batch_1.bin", "LIBSVM"));
  folder.write("blob", kImages);
  EXPECT_THAT(error(folder.path()), mentions(folder.file("blob"), "LIBSVM", "IDX", "CIFAR-10"));
  folder.write("blob", "");
  EXPECT_THAT(error(folder.path()), AllOf(mentions(folder.file("blob")), Not(mentions("LIBSVM"))));
}

TEST(LoadDataset, AdvisesHowToGetAMissingDataSet) {
  const TempFolder folder;
  EXPECT_THAT(error("mnist", folder.path()), mentions(folder.path(), "drover data get mnist"));
  EXPECT_THAT(error("cifar10", folder.path()), mentions(folder.path(), "drover data get cifar10"));
  EXPECT_THAT(error("fashion-mnst"), AllOf(mentions("fashion-mnst"), proposes("fashion-mnist")));
  EXPECT_THAT(error("/nonexistent/folder"),
              AllOf(mentions("/nonexistent/folder"), Not(mentions("generated"))));
}

TEST(LoadDataset, FindsDownloadedSetsInTheDataFolder) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("mnist"));
  for (const std::string part : {"train", "t10k"}) {
    folder.write("mnist/" + part + "-images-idx3-ubyte", kImages);
    folder.write("mnist/" + part + "-labels-idx1-ubyte", kLabels);
  }
  EXPECT_TRUE(load("mnist", folder.path()).ok());
}

TEST(LoadDataset, RefusesAnAbsurdNumberOfSamples) {
  TaskSpec spec;
  spec.data = "generated";
  spec.generated_samples = 0;
  EXPECT_FALSE(load_dataset(spec).ok());
}

}  // namespace
}  // namespace drover
