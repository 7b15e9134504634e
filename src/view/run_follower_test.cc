// Somebody who follows a run sees it grow and end, and leaves no trace.
#include "view/run_follower.h"

#include <gtest/gtest.h>

#include "view/random_run.h"
#include "view/run_json.h"

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
  RunFollower follower(only_run(path));
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
  RunFollower follower(only_run(path));
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
  RunFollower follower(only_run(folder.file("run.db")));
  EXPECT_FALSE(follower.look().ok());
  EXPECT_FALSE(follower.knows_the_run());
  const auto writer = writer_at(folder.file("run.db"));
  EXPECT_TRUE(follower.look().ok());
  EXPECT_TRUE(follower.knows_the_run());
}

TEST(RunFollower, KeepsWhatItKnowsOfAFileThatIsGone) {
  const TempFolder folder;
  const std::string path = random_run_file(folder, 1, 3, 20);
  RunFollower follower(only_run(path));
  ASSERT_TRUE(follower.look().ok());
  EXPECT_EQ(follower.snapshot(now()).warning, "");
  std::filesystem::remove(path);
  EXPECT_FALSE(follower.look().ok());
  EXPECT_EQ(follower.snapshot(now()).progress.step, 20u);
  EXPECT_NE(follower.snapshot(now()).warning.find("no such file"), std::string::npos);
}

TEST(RunFollower, GoesOverToAnotherRunWhenItCanBeRead) {
  const TempFolder folder;
  const std::string first = random_run_file(folder, 1, 3, 20);
  WatchedRun wanted;
  RunFollower follower([&wanted] { return wanted; });
  EXPECT_EQ(follower.look().value(), News::kNone) << "none has begun";
  EXPECT_FALSE(follower.knows_the_run());
  EXPECT_FALSE(follower.step(0).ok());

  wanted = {.file = first, .place = {"calm / seed 1", 1, 2}};
  EXPECT_EQ(follower.look().value(), News::kSome);
  EXPECT_EQ(follower.snapshot(now()).place, wanted.place);
  EXPECT_EQ(follower.look().value(), News::kNone);

  const std::string second = folder.file("second.db");
  wanted = {.file = second, .place = {"calm / seed 2", 2, 2}};
  EXPECT_FALSE(follower.look().ok());
  EXPECT_EQ(follower.snapshot(now()).file, first) << "until there is something else to show";
  EXPECT_EQ(follower.snapshot(now()).warning, "");
  EXPECT_EQ(follower.snapshot(now()).place.number, 1u);
  EXPECT_TRUE(follower.step(19).value().has_value());

  const auto writer = writer_at(second);
  RandomRun(2, 5).write(*writer, 0, 7);
  DROVER_EXPECT_OK(writer->flush());
  RunFollower alone(only_run(second));
  for (RunFollower* each : {&follower, &alone}) {
    while (each->look().value() != News::kNone) {
    }
  }
  RunSnapshot one_of_two = follower.snapshot(now());
  EXPECT_EQ(one_of_two.place, wanted.place);
  one_of_two.place = {};
  one_of_two.progress.quiet_s = 0.0;
  RunSnapshot by_itself = alone.snapshot(now());
  by_itself.progress.quiet_s = 0.0;
  EXPECT_EQ(all_json(one_of_two), all_json(by_itself)) << "nothing is left of the first";
  EXPECT_FALSE(follower.step(19).value().has_value());
}

TEST(RunFollower, SaysWhyARunIsGoneForGood) {
  const TempFolder folder;
  WatchedRun wanted{.file = random_run_file(folder, 1, 3, 20)};
  RunFollower follower([&wanted] { return wanted; });
  ASSERT_TRUE(follower.look().ok());
  std::filesystem::remove(wanted.file);
  wanted.gone = "it was interrupted";
  EXPECT_EQ(follower.look().value(), News::kSome);
  EXPECT_EQ(follower.snapshot(now()).warning, "it was interrupted");
  EXPECT_EQ(follower.snapshot(now()).progress.step, 20u);
  EXPECT_LT(follower.snapshot(now()).progress.quiet_s, 3600.0);
  EXPECT_EQ(follower.look().value(), News::kNone);
}

}  // namespace
}  // namespace drover
