// DroverRun: a `drover train` under test, in its own folder, and checks of what remains after it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "store/run_reader.h"
#include "support/process.h"

namespace drover::testing_support {

using Words = std::vector<std::string>;

// Sanitizers make everything many times slower: limits that are promises are stretched under them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kStretch = 6;
#else
inline constexpr int kStretch = 1;
#endif
// How soon all processes end when one without which the run cannot continue is lost.
inline constexpr std::chrono::milliseconds kEndsWithin = std::chrono::seconds(5 * kStretch);
inline constexpr std::chrono::milliseconds kRunPatience = std::chrono::seconds(60 * kStretch);

// For gtest.
void PrintTo(const Ending& ending, std::ostream* out);

// The result of a finished command.
struct Outcome {
  Ending ending;
  std::string out;
  std::string err;

  // -1 if a signal ended it.
  int status() const { return ending.exit_code.value_or(-1); }
};

// Runs the drover binary with `words` in `directory` until it ends.
Outcome drover(const Words& words, const std::string& directory);
// The same for another program of the tree, by its path.
Outcome run_program(const std::string& program, const Words& words, const std::string& directory);
// The same under a shell's `setup`, such as "ulimit -f 100".
Outcome drover_under(const std::string& setup, const Words& words, const std::string& directory);

// The last line of `text` as JSON; null if it is not JSON.
nlohmann::json last_line_json(const std::string& text);

// Arguments for a small, quick training: a model and generated data.
Words small_job(const std::string& model = "mlp");
Words operator+(Words words, const Words& more);

class DroverRun {
 public:
  // Starts `drover train` with `words`. The run file is named run.db.
  explicit DroverRun(const Words& words);

  Process& process() { return process_; }
  const TemporaryFolder& folder() const { return folder_; }
  std::string run_file() const { return folder_.file("run.db"); }
  RunReader reader() const;

  // Waits for a progress line that reports at least so many steps.
  void wait_for_step(uint64_t steps);

  // Processes of the run by name ("worker 1", "coordinator"), as they are now; the launcher is
  // "launcher". Remembers them and their sockets for expect_nothing_left().
  std::map<std::string, pid_t> find_processes();

  // Waits until every process found is gone and has closed its output. False if that takes longer
  // than kEndsWithin.
  bool all_processes_end();

  // No process, no socket and no file but the run file (and, if `killed`, SQLite's side files).
  void expect_nothing_left(bool killed) const;

  std::string err() const { return process_.output(Output::kStderr); }
  std::string out() const { return process_.output(Output::kStdout); }

 private:
  TemporaryFolder folder_;
  TemporaryFolder scratch_;  // TMPDIR
  Process process_;
  std::map<std::string, pid_t> processes_;
  std::set<std::string> sockets_;
};

std::vector<std::string> names_in(const std::string& folder);
std::string content_of(const std::string& path);

}  // namespace drover::testing_support
