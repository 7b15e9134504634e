// Process: runs a real program under test, reads its output line by line, and kills all of its
// processes at the end.
//
// Waiting blocks on pipes and process descriptors until an event or a deadline; nothing sleeps.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace drover::testing_support {

// Generous, so that tests do not fail on a loaded machine.
inline constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(60);

struct Command {
  std::vector<std::string> words;                  // the program's path, then its arguments
  std::map<std::string, std::string> environment;  // added to that of this process
  std::string directory;                           // empty: that of this process
};

// How a process ended: exactly one of the two is set.
struct Ending {
  std::optional<int> exit_code;
  std::optional<int> signal;

  bool operator==(const Ending&) const = default;
};
// "exit code 2" or "signal 9", for messages of tests.
std::string to_text(const Ending& ending);

enum class Output { kStdout, kStderr };

class Process {
 public:
  // Starts the program as the leader of its own process group. A program that cannot be started is
  // an error here, and not a child that ends with 127.
  static Result<Process> start(const Command& command);

  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  // Kills the process group: the program and its descendants, unless they have left the group.
  ~Process();

  pid_t pid() const { return pid_; }

  // Waits for a line on stdout or stderr that satisfies the predicate, or contains the text, and
  // returns it without its newline. A further call continues behind that line. Fails when the
  // deadline passes or both outputs are closed; the error has all output.
  Result<std::string> wait_for_line(const std::function<bool(std::string_view)>& wanted,
                                    std::chrono::milliseconds deadline = kPatience);
  Result<std::string> wait_for_line(std::string_view part,
                                    std::chrono::milliseconds deadline = kPatience);

  // To the program alone, or to its whole group.
  void signal(int number);
  void signal_group(int number);

  // Reads all output until the program ends. Fails when the deadline passes; the program then
  // continues. A further call returns the same.
  Result<Ending> wait(std::chrono::milliseconds deadline = kPatience);

  // The output that has been read so far by the functions above.
  const std::string& output(Output which) const { return text_[static_cast<size_t>(which)]; }

 private:
  Process(pid_t pid, int pid_fd, int stdout_fd, int stderr_fd);

  // Waits for output until `until` and reads it. False: there was none.
  bool read_more(std::chrono::steady_clock::time_point until, bool also_end);
  void collect_lines(size_t which);
  Error trouble(ErrorKind kind, const std::string& what) const;

  pid_t pid_;
  int pid_fd_;
  int pipes_[2];                    // stdout, stderr; -1 once closed
  std::string text_[2];             // all that was read
  size_t taken_[2] = {0, 0};        // how much of text_ has become lines
  std::vector<std::string> lines_;  // of both, in the order in which they were read
  size_t next_line_ = 0;            // the first that wait_for_line() has not looked at
  std::optional<Ending> ending_;
};

// A fresh folder, removed with everything in it at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

// Processes whose parent is `pid`, smallest first; none if there is no such process.
std::vector<pid_t> children_of(pid_t pid);

// Whether there is no such process, or only its zombie.
bool process_gone(pid_t pid);

// Waits until process_gone(pid). False if the deadline passes first.
bool wait_until_gone(pid_t pid, std::chrono::milliseconds deadline = kPatience);

}  // namespace drover::testing_support
