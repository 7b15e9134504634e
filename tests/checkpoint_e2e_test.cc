// A run that was stopped, killed or extended continues from its newest checkpoint, and has the
// result of a run without interruption.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/test_text.h"
#include "store/checkpoint.h"
#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

namespace fs = std::filesystem;

Words momentum() { return {"--optimizer", "momentum", "--lr", "0.05"}; }
Words adamw_with_average() {
  return {"--optimizer", "adamw", "--lr", "0.001", "--weight-decay", "0.01", "--ema", "0.9"};
}

Words job(const Words& learning, Step steps) {
  return small_job("lenet") + learning +
         Words{"--workers",          "3", "--batch", "4", "--deterministic", "--steps",
               std::to_string(steps)};
}

Outcome train(const TemporaryFolder& folder, const std::string& name, const Words& words) {
  return drover(Words{"train", "--run-file", folder.file(name)} + words, folder.path());
}

// The digest of the final parameters.
uint64_t digest_of(const TemporaryFolder& folder, const std::string& name) {
  const auto reader = RunReader::open(folder.file(name));
  if (!reader) return 0;
  return reader.value().end().value().parameters_digest;
}

// The evaluation of the last version. With averaging, that of the average.
double last_loss(const TemporaryFolder& folder, const std::string& name) {
  return RunReader::open(folder.file(name)).value().evaluations().value().back().loss;
}

class Resume : public ::testing::TestWithParam<Words> {};

TEST_P(Resume, TwentyStepsAndTwentyMoreGiveTheResultOfForty) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder, "whole.db", job(GetParam(), 40) + Words{"--shards", "2"}).status(), 0);
  const Outcome half =
      train(folder, "half.db", job(GetParam(), 20) + Words{"--shards", "2", "--checkpoint", "ck"});
  ASSERT_EQ(half.status(), 0) << half.err;
  const uint64_t whole = digest_of(folder, "whole.db");
  ASSERT_NE(whole, 0u);
  ASSERT_NE(digest_of(folder, "half.db"), whole);
  for (const std::string shards : {"2", "1", "5"}) {
    SCOPED_TRACE(shards);
    const std::string name = "rest" + shards + ".db";
    const Outcome rest =
        train(folder, name, job(GetParam(), 40) + Words{"--shards", shards, "--resume", "ck"});
    ASSERT_EQ(rest.status(), 0) << rest.err;
    EXPECT_EQ(digest_of(folder, name), whole);
    EXPECT_EQ(last_loss(folder, name), last_loss(folder, "whole.db"));
    const auto steps = RunReader::open(folder.file(name)).value().steps().value();
    ASSERT_EQ(steps.size(), 20u);
    EXPECT_EQ(steps.front().step, 20u);
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Resume, ::testing::Values(momentum(), adamw_with_average()),
                         [](const auto& each) { return each.param[1]; });

// The run hangs in step 25, where a worker takes ten minutes. When the checkpoint of step 20 is
// written, all processes are killed. It is the first checkpoint, so no earlier one can delay it.
TEST(Checkpoints, AKilledRunResumesWithTheResultOfAnUninterruptedOne) {
  const TemporaryFolder ck;
  const Words words =
      job(adamw_with_average(), 40) + Words{"--shards",           "2",  "--checkpoint", ck.path(),
                                            "--checkpoint-every", "20", "--resume",     ck.path()};
  DroverRun killed(words + Words{"--slow", "worker=1,steps=25,delay=600s"});
  const std::string manifest = checkpoint_folder(ck.path(), 20) + "/" + kManifestName;
  // Progress is printed periodically, and the checkpoint is reported once it is written.
  const auto kept = killed.process().wait_for_line(
      [&](std::string_view) { return fs::exists(manifest); }, kRunPatience);
  ASSERT_TRUE(kept.ok()) << kept.error().message;
  killed.find_processes();
  killed.process().signal_group(SIGKILL);
  ASSERT_TRUE(killed.all_processes_end());

  DroverRun again(words);
  EXPECT_EQ(again.process().wait(kRunPatience).value().exit_code, 0) << again.err();
  std::vector<Version> resumed;
  const auto events = again.reader().events().value();
  for (const EventRecord& event : events) {
    if (const auto* from = event.as<event::Resumed>()) resumed.push_back(from->version);
  }
  EXPECT_EQ(resumed, std::vector<Version>{20});
  const TemporaryFolder other;
  ASSERT_EQ(train(other, "whole.db", job(adamw_with_average(), 40)).status(), 0);
  EXPECT_EQ(again.reader().end().value().parameters_digest, digest_of(other, "whole.db"));
  const auto there = list_checkpoints(ck.path(), true).value();
  ASSERT_EQ(there.size(), 2u);
  for (const CheckpointFound& each : there) EXPECT_TRUE(each.checkpoint) << each.trouble;
  EXPECT_EQ(there.back().step, 40u);
}

TEST(Checkpoints, ADamagedCheckpointIsSkippedAndReported) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder, "a.db",
                  job(momentum(), 10) + Words{"--checkpoint", "ck", "--checkpoint-every", "5"})
                .status(),
            0);
  const std::string part = checkpoint_folder(folder.file("ck"), 10) + "/shard-0.safetensors";
  std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-3, std::ios::end);
  file.put('x');
  file.close();
  const Outcome rest = train(folder, "b.db", job(momentum(), 12) + Words{"--resume", "ck"});
  const bool has_earlier = fs::exists(checkpoint_folder(folder.file("ck"), 5) + "/manifest.json");
  EXPECT_THAT(rest.err, mentions(part));
  EXPECT_EQ(rest.status() == 0, has_earlier) << rest.err;
}

TEST(Checkpoints, AnotherModelOptimizerOrSeedIsRefused) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder, "a.db", job(momentum(), 4) + Words{"--checkpoint", "ck"}).status(), 0);
  const auto refused = [&](const Words& words) {
    const Outcome outcome =
        train(folder, "b.db", job(momentum(), 8) + words + Words{"--resume", "ck"});
    EXPECT_NE(outcome.status(), 0);
    EXPECT_FALSE(fs::exists(folder.file("b.db")));
    return outcome.err;
  };
  EXPECT_THAT(refused({"--momentum", "0.8"}), mentions("momentum", "0.9", "0.8"));
  EXPECT_THAT(refused({"--seed", "7"}), mentions("seed", 1, 7));
  EXPECT_THAT(refused({"--partition", "label"}), mentions("partition", "none", "label"));
  EXPECT_THAT(train(folder, "b.db", job(momentum(), 4) + Words{"--resume", "ck"}).err,
              mentions(checkpoint_folder("ck", 4), 4, "--steps"));
  EXPECT_THAT(train(folder, "b.db", job(momentum(), 8) + Words{"--resume", "nowhere"}).err,
              mentions("nowhere"));
  EXPECT_THAT(train(folder, "b.db", job(momentum(), 8) + Words{"--checkpoint", "ck"}).err,
              mentions(checkpoint_folder("ck", 4), "--resume ck", "--checkpoint"));
}

// With other waiting rules each block has its own version, and is saved as it was when it reached
// the step of the checkpoint.
TEST(Checkpoints, AreWrittenWithEachWaitingRule) {
  const std::vector<Words> ways = {{"--policy", "async"},
                                   {"--policy", "ssp:2"},
                                   {"--policy", "static:0.5"},
                                   {"--policy", "elfving-online", "--live", "--balance"}};
  for (const Words& way : ways) {
    SCOPED_TRACE(way[1]);
    const TemporaryFolder folder;
    const auto words = [&](const std::string& steps) {
      return small_job() + way +
             Words{"--workers", "3", "--batch", "8", "--steps", steps, "--evaluate-every", "7"};
    };
    const Outcome first =
        train(folder, "a.db", words("30") + Words{"--checkpoint", "ck", "--shards", "2"});
    ASSERT_EQ(first.status(), 0) << first.err;
    const Outcome rest = train(folder, "b.db", words("60") + Words{"--resume", "ck"});
    ASSERT_EQ(rest.status(), 0) << rest.err;
    const auto steps = RunReader::open(folder.file("b.db")).value().steps().value();
    ASSERT_EQ(steps.size(), 30u);
    EXPECT_EQ(steps.front().step, 30u);
    // Training continues instead of restarting.
    EXPECT_LT(last_loss(folder, "b.db"), last_loss(folder, "a.db") * 1.05);
    EXPECT_EQ(drover({"runs", "b.db"}, folder.path()).status(), 0);
    EXPECT_EQ(drover({"report", "b.db", "--out", "b.html"}, folder.path()).status(), 0);
  }
}

TEST(Checkpoints, AFullDiskDoesNotEndTheRun) {
  const TemporaryFolder folder;
  // Files of at most 512000 bytes: the run file is smaller, a checkpoint of Adam is not.
  const Outcome outcome =
      drover_under("trap '' XFSZ; ulimit -f 1000",
                   Words{"train", "--run-file", folder.file("a.db")} + small_job() +
                       Words{"--workers", "2", "--batch", "4", "--steps", "6", "--optimizer",
                             "adam", "--checkpoint", "ck", "--checkpoint-every", "2", "--shards",
                             "1", "--transport", "uds"},
                   folder.path());
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_THAT(outcome.err, mentions(std::strerror(EFBIG)));
  size_t refused = 0;  // others were skipped while one was being written
  const auto events = RunReader::open(folder.file("a.db")).value().events().value();
  for (const EventRecord& event : events) {
    const auto* failed = event.as<event::CheckpointFailed>();
    if (failed == nullptr || failed->cause == CheckpointFailure::kBusy) continue;
    ++refused;
    EXPECT_EQ(failed->cause, CheckpointFailure::kSystem);
    EXPECT_EQ(failed->os_error, EFBIG);
  }
  EXPECT_GT(refused, 0u);
  EXPECT_FALSE(newest_checkpoint(folder.file("ck")).value().checkpoint);
}

}  // namespace
}  // namespace drover::testing_support
