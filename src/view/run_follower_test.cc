// A RunFollower reads a run as it grows and ends, and leaves no files.
#include "view/run_follower.h"

#include <gtest/gtest.h>

#include "view/random_run.h"
#include "view/run_json.h"

namespace drover {
namespace {

using PollResult = RunFollower::PollResult;

Duration now() {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
}

TEST(RunFollower, ReadsOnlyAfterAChange) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  RunFollower follower(only_run(path));
  EXPECT_EQ(follower.poll().value(), PollResult::kChanged);
  EXPECT_EQ(follower.poll().value(), PollResult::kUnchanged);
  DROVER_EXPECT_OK(writer->on_step(sample_step(0, 2), sample_arrivals(0, 2)));
  DROVER_EXPECT_OK(writer->flush());
  EXPECT_EQ(follower.poll().value(), PollResult::kChanged);
  EXPECT_EQ(follower.snapshot(now()).progress.step, 1u);
  EXPECT_EQ(follower.snapshot(now()).progress.state, RunState::kRunning);
  EXPECT_EQ(follower.snapshot(now() + std::chrono::hours(1)).progress.state, RunState::kSilent);
  EXPECT_EQ(follower.poll().value(), PollResult::kUnchanged);
}

TEST(RunFollower, LeavesOnlyTheRunFile) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  RunFollower follower(only_run(path));
  {
    const auto writer = writer_at(path);
    RandomRun(1, 3).write(*writer, 0, 20);
    DROVER_EXPECT_OK(writer->flush());
    EXPECT_EQ(follower.poll().value(), PollResult::kChanged);
    DROVER_EXPECT_OK(writer->on_end({.outcome = RunOutcome::kFailed, .reason = "disk full"}));
  }
  EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
  EXPECT_EQ(follower.poll().value(), PollResult::kChanged);
  EXPECT_EQ(follower.snapshot(now()).progress.state, RunState::kFailed);
  EXPECT_EQ(follower.snapshot(now()).end.reason, "disk full");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
            1);
}

TEST(RunFollower, WaitsForAFileThatDoesNotExistYet) {
  const TempFolder folder;
  RunFollower follower(only_run(folder.file("run.db")));
  EXPECT_FALSE(follower.poll().ok());
  EXPECT_FALSE(follower.has_run());
  const auto writer = writer_at(folder.file("run.db"));
  EXPECT_TRUE(follower.poll().ok());
  EXPECT_TRUE(follower.has_run());
}

TEST(RunFollower, KeepsTheDataOfARemovedFile) {
  const TempFolder folder;
  const std::string path = random_run_file(folder, 1, 3, 20);
  RunFollower follower(only_run(path));
  ASSERT_TRUE(follower.poll().ok());
  EXPECT_EQ(follower.snapshot(now()).warning, "");
  std::filesystem::remove(path);
  EXPECT_FALSE(follower.poll().ok());
  EXPECT_EQ(follower.snapshot(now()).progress.step, 20u);
  EXPECT_NE(follower.snapshot(now()).warning.find("no such file"), std::string::npos);
}

TEST(RunFollower, SwitchesToAnotherRunWhenItCanBeRead) {
  const TempFolder folder;
  const std::string first = random_run_file(folder, 1, 3, 20);
  WatchedRun wanted;
  RunFollower follower([&wanted] { return wanted; });
  EXPECT_EQ(follower.poll().value(), PollResult::kUnchanged) << "no run has started";
  EXPECT_FALSE(follower.has_run());
  EXPECT_FALSE(follower.step(0).ok());

  wanted = {.file = first, .place = {"calm / seed 1", 1, 2}};
  EXPECT_EQ(follower.poll().value(), PollResult::kChanged);
  EXPECT_EQ(follower.snapshot(now()).place, wanted.place);
  EXPECT_EQ(follower.poll().value(), PollResult::kUnchanged);

  const std::string second = folder.file("second.db");
  wanted = {.file = second, .place = {"calm / seed 2", 2, 2}};
  EXPECT_FALSE(follower.poll().ok());
  EXPECT_EQ(follower.snapshot(now()).file, first) << "until the next run can be read";
  EXPECT_EQ(follower.snapshot(now()).warning, "");
  EXPECT_EQ(follower.snapshot(now()).place.number, 1u);
  EXPECT_TRUE(follower.step(19).value().has_value());

  const auto writer = writer_at(second);
  RandomRun(2, 5).write(*writer, 0, 7);
  DROVER_EXPECT_OK(writer->flush());
  RunFollower alone(only_run(second));
  for (RunFollower* each : {&follower, &alone}) {
    while (each->poll().value() != PollResult::kUnchanged) {
    }
  }
  RunSnapshot one_of_two = follower.snapshot(now());
  EXPECT_EQ(one_of_two.place, wanted.place);
  one_of_two.place = {};
  one_of_two.progress.quiet_s = 0.0;
  RunSnapshot by_itself = alone.snapshot(now());
  by_itself.progress.quiet_s = 0.0;
  EXPECT_EQ(all_json(one_of_two), all_json(by_itself)) << "no data of the first run is left";
  EXPECT_FALSE(follower.step(19).value().has_value());
}

TEST(RunFollower, ReportsWhyARunHasNoFile) {
  const TempFolder folder;
  WatchedRun wanted{.file = random_run_file(folder, 1, 3, 20)};
  RunFollower follower([&wanted] { return wanted; });
  ASSERT_TRUE(follower.poll().ok());
  std::filesystem::remove(wanted.file);
  wanted.gone = "it was interrupted";
  EXPECT_EQ(follower.poll().value(), PollResult::kChanged);
  EXPECT_EQ(follower.snapshot(now()).warning, "it was interrupted");
  EXPECT_EQ(follower.snapshot(now()).progress.step, 20u);
  EXPECT_LT(follower.snapshot(now()).progress.quiet_s, 3600.0);
  EXPECT_EQ(follower.poll().value(), PollResult::kUnchanged);
}

}  // namespace
}  // namespace drover
