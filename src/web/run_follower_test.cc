// Somebody who follows a run sees it grow and end, and leaves no trace.
#include "web/run_follower.h"

#include <gtest/gtest.h>

#include "web/random_run.h"

namespace drover {
namespace {

using News = RunFollower::News;

Duration now() {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
}

TEST(RunFollower, ReadsOnlyWhatHasChanged) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  RunFollower follower(path);
  EXPECT_EQ(follower.look().value(), News::kSome);
  EXPECT_EQ(follower.look().value(), News::kNone);
  DROVER_EXPECT_OK(writer->on_step(sample_step(0, 2), sample_arrivals(0, 2)));
  DROVER_EXPECT_OK(writer->flush());
  EXPECT_EQ(follower.look().value(), News::kSome);
  EXPECT_EQ(follower.snapshot(now()).progress.step, 1u);
  EXPECT_EQ(follower.snapshot(now()).progress.state, RunState::kRunning);
  EXPECT_EQ(follower.snapshot(now() + std::chrono::hours(1)).progress.state, RunState::kSilent);
  EXPECT_EQ(follower.look().value(), News::kNone);
}

TEST(RunFollower, LeavesOneFileBehind) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  RunFollower follower(path);
  {
    const auto writer = writer_at(path);
    RandomRun(1, 3).write(*writer, 0, 20);
    DROVER_EXPECT_OK(writer->flush());
    EXPECT_EQ(follower.look().value(), News::kSome);
    DROVER_EXPECT_OK(writer->on_end({.outcome = RunOutcome::kFailed, .reason = "no luck"}));
  }
  EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
  EXPECT_EQ(follower.look().value(), News::kSome);
  EXPECT_EQ(follower.snapshot(now()).progress.state, RunState::kFailed);
  EXPECT_EQ(follower.snapshot(now()).end.reason, "no luck");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
            1);
}

TEST(RunFollower, WaitsForAFileThatIsNotThereYet) {
  const TempFolder folder;
  RunFollower follower(folder.file("run.db"));
  EXPECT_FALSE(follower.look().ok());
  EXPECT_FALSE(follower.knows_the_run());
  const auto writer = writer_at(folder.file("run.db"));
  EXPECT_TRUE(follower.look().ok());
  EXPECT_TRUE(follower.knows_the_run());
}

TEST(RunFollower, KeepsWhatItKnowsOfAFileThatIsGone) {
  const TempFolder folder;
  const std::string path = random_run_file(folder, 1, 3, 20);
  RunFollower follower(path);
  ASSERT_TRUE(follower.look().ok());
  EXPECT_EQ(follower.snapshot(now()).warning, "");
  std::filesystem::remove(path);
  EXPECT_FALSE(follower.look().ok());
  EXPECT_EQ(follower.snapshot(now()).progress.step, 20u);
  EXPECT_NE(follower.snapshot(now()).warning.find("no such file"), std::string::npos);
}

}  // namespace
}  // namespace drover
