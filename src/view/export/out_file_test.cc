// A file appears only when it is complete, and does not replace another one unintentionally.
#include "view/export/out_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "store/test_run.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

size_t files_in(const TempFolder& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
}

Result<OutFile> written(const std::string& path, bool force, const std::string& text) {
  auto file = OutFile::create(path, force);
  if (file) file.value().write(text);
  return file;
}

TEST(OutFile, AppearsWhenItIsComplete) {
  const TempFolder folder;
  const std::string path = folder.file("a.csv");
  {
    auto file = written(path, false, "hello");
    ASSERT_TRUE(file);
    EXPECT_FALSE(fs::exists(path));
    DROVER_EXPECT_OK(file.value().complete());
    EXPECT_FALSE(fs::exists(path));
    DROVER_EXPECT_OK(file.value().publish());
  }
  EXPECT_EQ(content_of(path), "hello");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(OutFile, LeavesNothingIfItIsNotPublished) {
  const TempFolder folder;
  { ASSERT_TRUE(written(folder.file("a.csv"), false, "hello")); }
  EXPECT_EQ(files_in(folder), 0u);
}

TEST(OutFile, ReplacesOnlyWithForceAndOnlyAtTheEnd) {
  const TempFolder folder;
  const std::string path = folder.make_file("a.csv", "old");
  const auto refused = OutFile::create(path, false);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--force"), std::string::npos);
  { ASSERT_TRUE(written(path, true, "new")); }
  EXPECT_EQ(content_of(path), "old");
  auto file = written(path, true, "new");
  ASSERT_TRUE(file);
  DROVER_EXPECT_OK(file.value().complete());
  DROVER_EXPECT_OK(file.value().publish());
  EXPECT_EQ(content_of(path), "new");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(OutFile, DoesNotReplaceAFileCreatedMeanwhile) {
  const TempFolder folder;
  const std::string path = folder.file("a.csv");
  auto file = written(path, false, "ours");
  ASSERT_TRUE(file);
  folder.make_file("a.csv", "theirs");
  DROVER_EXPECT_OK(file.value().complete());
  EXPECT_FALSE(file.value().publish());
  EXPECT_EQ(content_of(path), "theirs");
}

TEST(OutFile, ReportsPathsThatCannotBeWritten) {
  const TempFolder folder;
  const auto nowhere = OutFile::create(folder.file("missing/a.csv"), false);
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find("missing/a.csv"), std::string::npos);
  EXPECT_FALSE(OutFile::create(folder.path().string(), true)) << "a folder";
  EXPECT_FALSE(OutFile::create("/dev/full", true)) << "not a regular file";
}

TEST(PublishAll, PublishesNoneIfOneIsIncomplete) {
  const TempFolder folder;
  std::vector<OutFile> files;
  for (const char* name : {"a", "b"}) {
    auto file = written(folder.file(name), false, name);
    ASSERT_TRUE(file);
    files.push_back(std::move(file).value());
  }
  DROVER_EXPECT_OK(publish_all(files));
  EXPECT_EQ(content_of(folder.file("a")), "a");
  EXPECT_EQ(content_of(folder.file("b")), "b");
}

}  // namespace
}  // namespace drover
