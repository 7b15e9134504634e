// A file has its old content or the new content, never a part of it, and drafts are removed.
#include "core/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/test_text.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
 protected:
  AtomicFileTest() {
    std::string pattern = (fs::temp_directory_path() / "drover-atomic-XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~AtomicFileTest() override { fs::remove_all(folder_); }
  AtomicFileTest(const AtomicFileTest&) = delete;
  AtomicFileTest& operator=(const AtomicFileTest&) = delete;

  std::string path(const std::string& name = "file") const { return (folder_ / name).string(); }
  std::string content() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& each : fs::directory_iterator(folder_))
      names.push_back(each.path().filename().string());
    return names;
  }
  static Status write(AtomicFile& file, const std::string& text) {
    return file.write(std::span(text));
  }

  fs::path folder_;
};

using Names = std::vector<std::string>;

TEST_F(AtomicFileTest, AppearsWhenItIsCommitted) {
  {
    auto file = AtomicFile::create(path());
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(write(file.value(), "hel").ok());
    EXPECT_TRUE(write(file.value(), "lo").ok());
    EXPECT_FALSE(fs::exists(path()));
    EXPECT_TRUE(file.value().sync().ok());
    EXPECT_FALSE(fs::exists(path()));
    AtomicFile moved = std::move(file).value();
    EXPECT_TRUE(moved.commit().ok());
  }
  EXPECT_EQ(content(), "hello");
  EXPECT_EQ(names(), Names{"file"});
}

TEST_F(AtomicFileTest, RemovesTheDraftWithoutCommit) {
  {
    auto file = AtomicFile::create(path());
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(write(file.value(), "hello").ok());
  }
  EXPECT_EQ(names(), Names{});
}

TEST_F(AtomicFileTest, ReplacesTheOldFileAndADraftOfACrashedProcess) {
  std::ofstream(path()) << "old content, longer";
  std::ofstream(path() + kPartialSuffix) << "left by a crash, longer still";
  EXPECT_TRUE(write_file_atomically(path(), std::string("new")).ok());
  EXPECT_EQ(content(), "new");
  EXPECT_EQ(names(), Names{"file"});
}

TEST_F(AtomicFileTest, AFailureLeavesNoFiles) {
  const Status nowhere = write_file_atomically(path("nowhere/file"), std::string("x"));
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.error(),
              is_error(ErrorKind::kSystem, path("nowhere/file"), std::strerror(ENOENT)));
  EXPECT_EQ(nowhere.error().os_error, ENOENT);
  fs::create_directory(path());
  std::ofstream(path("file/inside")) << "x";
  const Status onto_folder = write_file_atomically(path(), std::string("x"));
  ASSERT_FALSE(onto_folder.ok());
  EXPECT_EQ(onto_folder.error().kind, ErrorKind::kSystem);
  EXPECT_EQ(names(), Names{"file"});
}

TEST_F(AtomicFileTest, DoesNotReplaceAFileIfReplaceIsFalse) {
  auto file = AtomicFile::create(path(), {.replace = false});
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(write(file.value(), "ours").ok());
  std::ofstream(path()) << "theirs";
  const Status refused = file.value().commit();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kInvalidInput);
  EXPECT_EQ(content(), "theirs");
  fs::remove(path());
  EXPECT_TRUE(file.value().commit().ok());
  EXPECT_EQ(content(), "ours");
}

TEST_F(AtomicFileTest, RenamesOnlyToAFreeName) {
  std::ofstream(path("a")) << "a";
  std::ofstream(path("file")) << "b";
  EXPECT_FALSE(rename_if_free(path("a"), path()));
  EXPECT_EQ(content(), "b");
  fs::remove(path());
  EXPECT_TRUE(rename_if_free(path("a"), path()));
  EXPECT_EQ(content(), "a");
}

TEST_F(AtomicFileTest, AnUnsharedFileIsReadableByItsOwnerAloneAndFollowsNoLink) {
  std::ofstream(path("elsewhere")) << "untouched";
  fs::create_symlink(path("elsewhere"), path() + kPartialSuffix);
  EXPECT_TRUE(write_file_atomically(path(), std::string("secret"), {.shared = false}).ok());
  struct stat found = {};
  ASSERT_EQ(::stat(path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600U);
  std::ifstream elsewhere(path("elsewhere"));
  std::string text;
  std::getline(elsewhere, text);
  EXPECT_EQ(text, "untouched");
}

TEST_F(AtomicFileTest, ContendedDraftsHaveUniqueNames) {
  std::ofstream(path() + kPartialSuffix) << "of another process";
  {
    auto file = AtomicFile::create(path(), {.contended = true});
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(names().size(), 2U);
  }
  EXPECT_EQ(names(), Names{std::string("file") + kPartialSuffix});
}

// Stopping is like a kill at that moment: the disk is not changed any more.
TEST_F(AtomicFileTest, StopsBeforeAnyOperationAndLeavesTheDiskUnchanged) {
  for (int steps = 0; steps < 5; ++steps) {
    SCOPED_TRACE(steps);
    std::ofstream(path(), std::ios::trunc) << "old";
    int left = steps;
    const Status stopped = write_file_atomically(path(), std::string("new"),
                                                 {.keep_writing = [&] { return left-- > 0; }});
    ASSERT_FALSE(stopped.ok());
    EXPECT_EQ(stopped.error().kind, ErrorKind::kStopped);
    EXPECT_EQ(content(), steps < 4 ? "old" : "new") << "only the folder was not synced";
    EXPECT_EQ(fs::exists(path() + kPartialSuffix), steps > 0 && steps < 4);
    fs::remove(path() + kPartialSuffix);
  }
}

TEST_F(AtomicFileTest, MakesFoldersAndTheirParents) {
  EXPECT_TRUE(make_folder(path("a/b/c")).ok());
  EXPECT_TRUE(make_folder(path("a/b/c")).ok());
  EXPECT_TRUE(fs::is_directory(path("a/b/c")));
  EXPECT_EQ(make_folder(path("d/e"), [] { return false; }).error().kind, ErrorKind::kStopped);
  EXPECT_FALSE(fs::exists(path("d")));
  std::ofstream(path("taken")) << "x";
  EXPECT_FALSE(make_folder(path("taken/f")).ok());
}

}  // namespace
}  // namespace drover
