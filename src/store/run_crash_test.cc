// kill -9 at any time leaves a file that opens, with complete steps without a gap, and with all
// rows that were committed before.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "store/test_run.h"

namespace drover {
namespace {

constexpr uint32_t kWorkers = 30;
constexpr Step kSteps = 4000;

// Writes a run, and one byte to `pipe` after each flush. Does not return.
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

// In a child process: exits at a chosen change of the disk; if that is a write, it does half of it.
// SQLite's system calls are C functions without context, so their counters are global.
int64_t changes_left = 0;
ssize_t (*real_pwrite)(int, const void*, size_t, off_t) = nullptr;
int (*real_ftruncate)(int, off_t) = nullptr;
int (*real_unlink)(const char*) = nullptr;

bool last_change() { return --changes_left == 0; }

ssize_t dying_pwrite(int file, const void* bytes, size_t count, off_t offset) {
  if (last_change()) {
    static_cast<void>(real_pwrite(file, bytes, count / 2, offset));
    raise(SIGKILL);
  }
  return real_pwrite(file, bytes, count, offset);
}

int dying_ftruncate(int file, off_t size) {
  if (last_change()) raise(SIGKILL);
  return real_ftruncate(file, size);
}

int dying_unlink(const char* path) {
  if (last_change()) raise(SIGKILL);
  return real_unlink(path);
}

// Replaces one of SQLite's system calls and keeps the original. Returns false if there is no such
// call.
template <typename Function>
bool replace_call(const char* name, Function replacement, Function& original) {
  sqlite3_vfs* system = sqlite3_vfs_find("unix");
  const sqlite3_syscall_ptr current = system->xGetSystemCall(system, name);
  if (current == nullptr) return false;
  original = reinterpret_cast<Function>(current);
  return system->xSetSystemCall(system, name, reinterpret_cast<sqlite3_syscall_ptr>(replacement)) ==
         SQLITE_OK;
}

// A very short run, since its beginning and its end change the disk most.
int write_short_run(const std::string& path) {
  auto writer = RunWriter::create(path, sample_header());
  if (!writer) return 1;
  if (!writer.value()->on_step(sample_step(0, 4), sample_arrivals(0, 4))) return 2;
  if (!writer.value()->flush()) return 3;
  if (!writer.value()->on_step(sample_step(1, 4), sample_arrivals(1, 4))) return 4;
  return writer.value()->on_end({}) ? 0 : 5;
}

TEST(RunCrash, AKillAtAnyChangeOfTheDiskLeavesAConsistentFile) {
  int64_t unborn = 0;
  int64_t unfinished = 0;
  int64_t finished = 0;
  for (int64_t changes = 1;; ++changes) {
    SCOPED_TRACE("killed at change " + std::to_string(changes));
    ASSERT_LT(changes, 1000);
    const TempFolder folder;
    const std::string path = folder.file("run.db");
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      changes_left = changes;
      const bool writes = replace_call("pwrite64", &dying_pwrite, real_pwrite) ||
                          replace_call("pwrite", &dying_pwrite, real_pwrite);
      const bool others = replace_call("ftruncate", &dying_ftruncate, real_ftruncate) &&
                          replace_call("unlink", &dying_unlink, real_unlink);
      _exit(writes && others ? write_short_run(path) : 9);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      break;  // the run makes fewer changes
    }
    ASSERT_EQ(WTERMSIG(status), SIGKILL);

    auto reader = RunReader::open(path);
    if (!reader) {  // killed before the run file existed: its name must still be free
      ++unborn;
      ASSERT_EQ(access(path.c_str(), F_OK), -1) << reader.error().message;
      const auto again = RunWriter::create(path, sample_header());
      ASSERT_TRUE(again.ok()) << again.error().message;
      continue;
    }
    EXPECT_EQ(reader.value().header().value(), sample_header());
    EXPECT_EQ(reader.value().warning(), "");
    const auto steps = reader.value().steps().value();
    EXPECT_EQ(reader.value().arrivals().value().size(), 4 * steps.size());
    const bool ended = reader.value().end().value().outcome == RunOutcome::kCompleted;
    ++(ended ? finished : unfinished);
    if (ended) {
      EXPECT_EQ(steps.size(), 2u);
    }
  }
  EXPECT_GT(unborn, 5);
  EXPECT_GT(unfinished, 5);
  EXPECT_GT(finished, 5);
}

}  // namespace
}  // namespace drover
