// End-to-end tests of drover export: from a real run to files that other tools read, and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "core/test_text.h"
#include "store/database.h"
#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Outcome exported(const TemporaryFolder& folder, const std::string& format, const std::string& out,
                 const Words& more = {}) {
  return drover(Words{"export", "run.db", "--format", format, "--out", out} + more, folder.path());
}

// A saved replay is a run file without training, and is created quickly.
void make_run(const TemporaryFolder& folder) {
  std::ofstream(folder.file("made.csv")) << [] {
    std::string text = "step,w0,w1,w2\n";
    for (int step = 0; step < 60; ++step) {
      text += std::to_string(step) + ",1." + std::to_string(step % 7) + ",1.25," +
              (step % 3 == 0 ? "4" : "1.1") + "\n";
    }
    return text;
  }();
  const Outcome made = drover(
      {"replay", "--trace", "made.csv", "--policy", "static:0.6", "--save", "run.db", "--quiet"},
      folder.path());
  ASSERT_EQ(made.status(), 0) << made.err;
}

TEST(Export, OfARealRunCanBeReplayed) {
  DroverRun run(small_job() + Words{"--workers", "3", "--steps", "30", "--shards", "2"});
  const auto ending = run.process().wait(kRunPatience);
  ASSERT_TRUE(ending);
  ASSERT_EQ(ending.value().exit_code, 0) << run.err();
  const Outcome trace = exported(run.folder(), "trace", "times.csv");
  ASSERT_EQ(trace.status(), 0) << trace.err;
  EXPECT_THAT(trace.out, mentions("times.csv"));
  const Outcome replayed = drover(
      {"replay", "--trace", "times.csv", "--policy", "sync,ecdf", "--policy-warmup", "5", "--json"},
      run.folder().path());
  ASSERT_EQ(replayed.status(), 0) << replayed.err;
  EXPECT_EQ(last_line_json(replayed.out)["steps"], 30);
  EXPECT_EQ(last_line_json(replayed.out)["workers"], 3);

  const Outcome picture = exported(run.folder(), "perfetto", "run.json");
  ASSERT_EQ(picture.status(), 0) << picture.err;
  EXPECT_THAT(picture.out, mentions("ui.perfetto.dev"));
  const auto json = nlohmann::json::parse(content_of(run.folder().file("run.json")));
  std::set<std::string> tracks;
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] == "thread_name") tracks.insert(event["args"]["name"]);
  }
  EXPECT_EQ(tracks.size(), 7u);
  for (const char* name : {"shard 0", "shard 1", "steps", "worker 0", "worker 1", "worker 2"})
    EXPECT_TRUE(tracks.contains(name)) << name;
}

TEST(Export, EachFormatWritesOnlyItsFiles) {
  const TemporaryFolder folder;
  make_run(folder);
  EXPECT_EQ(exported(folder, "csv", "tables", {"--steps", "10:20"}).status(), 0);
  const std::string steps = content_of(folder.file("tables/steps.csv"));
  EXPECT_EQ(std::count(steps.begin(), steps.end(), '\n'), 11);
  EXPECT_EQ(exported(folder, "npy", "t.npy").status(), 0);
  EXPECT_EQ(exported(folder, "perfetto", "t.json").status(), 0);
  EXPECT_THAT(names_in(folder.path()),
              ElementsAre("made.csv", "run.db", "t.bounds.npy", "t.json", "t.npy", "tables"));
  // Censored times are omitted, and the user is informed.
  const Outcome trace = exported(folder, "trace", "t.csv", {"--quiet"});
  EXPECT_EQ(trace.status(), 0);
  EXPECT_THAT(trace.err, mentions(60, 180));
  EXPECT_THAT(trace.out, IsEmpty());
}

TEST(Export, ReplacesFilesOnlyWithForce) {
  const TemporaryFolder folder;
  make_run(folder);
  std::ofstream(folder.file("t.json")) << "precious";
  const Outcome refused = exported(folder, "perfetto", "t.json");
  EXPECT_EQ(refused.status(), 1);
  EXPECT_THAT(refused.err, mentions("t.json", "--force"));
  EXPECT_EQ(content_of(folder.file("t.json")), "precious");
  EXPECT_EQ(exported(folder, "perfetto", "t.json", {"--force"}).status(), 0);
  EXPECT_THAT(content_of(folder.file("t.json")), StartsWith("{"));
  EXPECT_NE(exported(folder, "perfetto", "run.db", {"--force"}).status(), 0)
      << "the run file itself";
  EXPECT_THAT(content_of(folder.file("run.db")), StartsWith("SQLite"));
}

TEST(Export, ReportsErrors) {
  const TemporaryFolder folder;
  make_run(folder);
  const auto expect_error = [&](const Outcome& outcome, int status,
                                const ::testing::Matcher<std::string>& words) {
    EXPECT_EQ(outcome.status(), status) << outcome.err;
    EXPECT_THAT(outcome.err, words);
  };
  expect_error(exported(folder, "perfeto", "x"), 2, proposes("perfetto"));
  expect_error(exported(folder, "csv", "x", {"--steps", "50:90"}), 1, mentions(60, 0, 59));
  expect_error(exported(folder, "csv", "x", {"--steps", "9"}), 2, mentions("--steps", "100:200"));
  expect_error(exported(folder, "csv", "made.csv"), 1, mentions("made.csv", "--out"));
  expect_error(exported(folder, "npy", "no/where.npy"), 1, mentions("no/where.npy"));
  expect_error(drover({"export", "run.db", "--format", "csv"}, folder.path()), 2,
               mentions("--out"));
  const auto of_file = [&](const std::string& name) {
    return drover({"export", name, "--format", "csv", "--out", "x"}, folder.path());
  };
  expect_error(of_file("made.csv"), 1, mentions("made.csv"));
  expect_error(of_file("none.db"), 1, mentions("none.db"));
  auto newer = Database::open(folder.file("run.db"), Database::Mode::kReadWrite);
  ASSERT_TRUE(newer);
  ASSERT_TRUE(newer.value().execute("PRAGMA user_version = 99"));
  expect_error(of_file("run.db"), 1, mentions("run.db", 99));
  ASSERT_TRUE(newer.value().execute(
      "PRAGMA user_version = 3; DELETE FROM steps; DELETE FROM arrivals; UPDATE run SET outcome = "
      "'running'"));
  expect_error(of_file("run.db"), 1, AllOf(mentions("run.db"), Not(mentions(99))));
  EXPECT_THAT(names_in(folder.path()), ElementsAre("made.csv", "run.db")) << "no output is left";
}

TEST(Export, ToAFullDiskLeavesNothing) {
  const TemporaryFolder folder;
  make_run(folder);
  for (const char* format : {"csv", "npy", "perfetto", "trace"}) {
    SCOPED_TRACE(format);
    // Files of no more than one block: 512 bytes or 1 KB.
    const Outcome full =
        drover_under("trap '' XFSZ; ulimit -f 1",
                     {"export", "run.db", "--format", format, "--out", "out"}, folder.path());
    EXPECT_EQ(full.status(), 1);
    EXPECT_THAT(full.err, mentions("out", std::strerror(EFBIG)));
    EXPECT_THAT(names_in(folder.path()), ElementsAre("made.csv", "run.db"));
  }
}

TEST(Export, OfALiveRunPrintsANote) {
  DroverRun run(small_job() + Words{"--workers", "2", "--steps", "100000"});
  // The steps of the first line are on the disk when the second line is printed.
  for (int line = 0; line < 2; ++line)
    ASSERT_TRUE(run.process().wait_for_line("/100000", kRunPatience));
  const Outcome outcome = exported(run.folder(), "npy", "t.npy");
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_THAT(outcome.err, Not(IsEmpty()));
  run.process().signal(SIGINT);
  EXPECT_TRUE(run.process().wait(kRunPatience));
}

}  // namespace
}  // namespace drover::testing_support
