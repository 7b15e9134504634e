// kill -9 at any moment must leave a file that opens, holds whole steps without a gap, and all that
// was committed before.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "store/test_run.h"

namespace drover {
namespace {

constexpr uint32_t kWorkers = 30;
constexpr Step kSteps = 4000;

// Writes a run, and one byte into `pipe` after each flush. Never comes back.
[[noreturn]] void write_until_killed(const std::string& path, int pipe, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto writer = RunWriter::create(path, sample_header(), {.rows_per_commit = 500, .pages_max = 0});
  if (!writer) _exit(1);
  for (Step step = 0; step < kSteps; ++step) {
    if (!writer.value()->on_step(sample_step(step, kWorkers), sample_arrivals(step, kWorkers)))
      _exit(1);
    if (random() % 16 == 0) {
      if (!writer.value()->flush()) _exit(1);
      const char byte = 1;
      if (write(pipe, &byte, 1) != 1) _exit(1);
    }
  }
  if (!writer.value()->on_end({})) _exit(1);
  while (true) pause();
}

TEST(RunCrash, AKilledWriterLeavesAConsistentFile) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TempFolder folder;
    const std::string path = folder.file("run.db");
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(ends[0]);
      write_until_killed(path, ends[1], seed);
    }
    close(ends[1]);
    std::mt19937_64 random(seed);
    const uint64_t flushes = 1 + random() % 150;
    uint64_t seen = 0;
    char byte = 0;
    while (seen < flushes && read(ends[0], &byte, 1) == 1) ++seen;
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(ends[0]);
    ASSERT_GE(seen, 1u);

    const RunReader reader = reader_at(path);
    EXPECT_EQ(reader.header().value(), sample_header());
    const auto steps = reader.steps().value();
    ASSERT_GE(steps.size(), seen);  // a flush follows each step at most once
    for (size_t i = 0; i < steps.size(); ++i) ASSERT_EQ(steps[i].step, i);
    EXPECT_EQ(reader.arrivals().value().size(), kWorkers * steps.size());
    if (steps.size() < kSteps) {
      EXPECT_EQ(reader.end().value().outcome, RunOutcome::kRunning);
    }
    Result<Database> database = Database::open(path, Database::Mode::kCreate);
    ASSERT_TRUE(database.ok());
    const auto check = database.value().query("PRAGMA integrity_check",
                                              [](const Statement& row) { return row.text(0); });
    ASSERT_TRUE(check.ok()) << check.error().message;
    EXPECT_EQ(check.value(), std::vector<std::string>{"ok"});
  }
}

// The moments when a run begins and ends touch the file most; the kill comes at a random one of
// them.
TEST(RunCrash, BeginningAndEndCanBeKilledToo) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TempFolder folder;
    const std::string path = folder.file("run.db");
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const char byte = 1;
      if (write(ends[1], &byte, 1) != 1) _exit(1);
      auto writer = RunWriter::create(path, sample_header());
      if (!writer || !writer.value()->on_step(sample_step(0, 4), sample_arrivals(0, 4))) _exit(1);
      if (!writer.value()->on_end({})) _exit(1);
      while (true) pause();
    }
    char byte = 0;
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
    // Spinning, not sleeping: the moment is random anyway, only the spread matters.
    volatile uint64_t spin = 0;
    for (const uint64_t turns = seed * 150'000; spin < turns;) spin = spin + 1;
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    close(ends[0]);
    close(ends[1]);

    auto reader = RunReader::open(path);
    if (!reader) {  // killed before there was a run: no file yet, or an empty one
      EXPECT_TRUE(reader.error().message.find("it is empty") != std::string::npos ||
                  reader.error().message.find("no such file") != std::string::npos)
          << reader.error().message;
      EXPECT_TRUE(RunWriter::create(path, sample_header()).ok());  // and the name is still free
      continue;
    }
    EXPECT_EQ(reader.value().header().value(), sample_header());
    const auto steps = reader.value().steps().value();
    EXPECT_EQ(reader.value().arrivals().value().size(), 4 * steps.size());
    if (reader.value().end().value().outcome == RunOutcome::kCompleted) {
      EXPECT_EQ(steps.size(), 1u);
    }
  }
}

}  // namespace
}  // namespace drover
