#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/check.h"

extern "C" char** environ;

namespace drover::testing_support {
namespace {

using Clock = std::chrono::steady_clock;

// Rounded up: a poll that ended just before the deadline would make the caller poll again.
int milliseconds_until(Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1'000'000));
}

void close_once(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// A descriptor that becomes readable when the process ends. glibc 2.36 has no header for it in C++.
int open_process(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

std::vector<std::string> environment_of(const Command& command) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!command.environment.contains(std::string(text.substr(0, text.find('='))))) {
      result.emplace_back(text);
    }
  }
  for (const auto& [name, value] : command.environment) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct Stat {
  char state;
  pid_t parent;
};

// From /proc/PID/stat: "17 (any name, even with spaces) S 1 ...".
std::optional<Stat> stat_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  const std::string content = text.str();
  const size_t name_end = content.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(content.substr(name_end + 1));
  Stat stat{};
  if (!(rest >> stat.state >> stat.parent)) return std::nullopt;
  return stat;
}

}  // namespace

std::string to_text(const Ending& ending) {
  if (ending.exit_code) return "exit code " + std::to_string(*ending.exit_code);
  return "signal " + std::to_string(ending.signal.value_or(0));
}

Result<Process> Process::start(const Command& command) {
  DROVER_CHECK(!command.words.empty());
  int out[2];
  int err[2];
  // Close-on-exec, so that a second program does not hold the first one's pipes open.
  DROVER_CHECK(::pipe2(out, O_CLOEXEC) == 0);
  DROVER_CHECK(::pipe2(err, O_CLOEXEC) == 0);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  if (!command.directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, command.directory.c_str());
  }
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);

  std::vector<std::string> words = command.words;
  std::vector<std::string> environment = environment_of(command);
  pid_t pid = -1;
  const int trouble = posix_spawn(&pid, words.front().c_str(), &actions, &attributes,
                                  pointers_to(words).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(out[1]);
  ::close(err[1]);
  if (trouble != 0) {
    ::close(out[0]);
    ::close(err[0]);
    return system_error("cannot start '" + words.front() + "': " + std::strerror(trouble));
  }
  const int pid_fd = open_process(pid);
  DROVER_CHECK(pid_fd >= 0);
  return Process(pid, pid_fd, out[0], err[0]);
}

Process::Process(pid_t pid, int pid_fd, int stdout_fd, int stderr_fd)
    : pid_(pid), pid_fd_(pid_fd), pipes_{stdout_fd, stderr_fd} {}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pid_fd_(std::exchange(other.pid_fd_, -1)),
      pipes_{std::exchange(other.pipes_[0], -1), std::exchange(other.pipes_[1], -1)},
      text_{std::move(other.text_[0]), std::move(other.text_[1])},
      taken_{other.taken_[0], other.taken_[1]},
      lines_(std::move(other.lines_)),
      next_line_(other.next_line_),
      ending_(other.ending_) {}

Process::~Process() {
  if (pid_ > 0) {
    // A group's number stays in use as long as it has a process, also after its leader has ended.
    ::kill(-pid_, SIGKILL);
    if (!ending_) {
      int status = 0;
      ::waitpid(pid_, &status, 0);
    }
  }
  close_once(pid_fd_);
  close_once(pipes_[0]);
  close_once(pipes_[1]);
}

bool Process::read_more(Clock::time_point until, bool also_end) {
  // poll ignores negative descriptors.
  std::array<pollfd, 3> polled = {
      {{pipes_[0], POLLIN, 0}, {pipes_[1], POLLIN, 0}, {also_end ? pid_fd_ : -1, POLLIN, 0}}};
  const int ready = ::poll(polled.data(), polled.size(), milliseconds_until(until));
  if (ready < 0) return errno == EINTR;
  for (size_t which = 0; which < 2; ++which) {
    if (polled[which].revents == 0) continue;
    std::array<char, 65'536> buffer;
    const ssize_t count = ::read(pipes_[which], buffer.data(), buffer.size());
    if (count > 0) {
      text_[which].append(buffer.data(), static_cast<size_t>(count));
    } else {
      close_once(pipes_[which]);
    }
    collect_lines(which);
  }
  return ready > 0;
}

void Process::collect_lines(size_t which) {
  const std::string& text = text_[which];
  while (taken_[which] < text.size()) {
    size_t end = text.find('\n', taken_[which]);
    if (end == std::string::npos) {
      if (pipes_[which] >= 0) return;  // more of this line may come
      end = text.size();
    }
    lines_.push_back(text.substr(taken_[which], end - taken_[which]));
    taken_[which] = std::min(end + 1, text.size());
  }
}

Error Process::trouble(ErrorKind kind, const std::string& what) const {
  return Error{kind, what + "\n--- stdout\n" + text_[0] + "\n--- stderr\n" + text_[1] + "\n---"};
}

Result<std::string> Process::wait_for_line(const std::function<bool(std::string_view)>& wanted,
                                           std::chrono::milliseconds deadline) {
  const auto until = Clock::now() + deadline;
  while (true) {
    while (next_line_ < lines_.size()) {
      const std::string& line = lines_[next_line_++];
      if (wanted(line)) return line;
    }
    if (pipes_[0] < 0 && pipes_[1] < 0) {
      return trouble(ErrorKind::kDisconnected,
                     "the program closed its output before the line came");
    }
    if (!read_more(until, false))
      return trouble(ErrorKind::kTimedOut, "the line did not come in time");
  }
}

Result<std::string> Process::wait_for_line(std::string_view part,
                                           std::chrono::milliseconds deadline) {
  return wait_for_line(
      [part](std::string_view line) { return line.find(part) != std::string_view::npos; },
      deadline);
}

void Process::signal(int number) {
  if (!ending_) ::kill(pid_, number);
}

void Process::signal_group(int number) { ::kill(-pid_, number); }

Result<Ending> Process::wait(std::chrono::milliseconds deadline) {
  const auto until = Clock::now() + deadline;
  while (!ending_) {
    // Read meanwhile: with a full pipe the program would block and never end.
    if (!read_more(until, true))
      return trouble(ErrorKind::kTimedOut, "the program did not end in time");
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) continue;
    ending_ = WIFEXITED(status) ? Ending{WEXITSTATUS(status), std::nullopt}
                                : Ending{std::nullopt, WTERMSIG(status)};
    // The last output is still in the pipes. Children may hold them open and print for ever: read
    // only what is there now.
    while ((pipes_[0] >= 0 || pipes_[1] >= 0) && Clock::now() < until &&
           read_more(Clock::now(), false)) {
    }
  }
  return *ending_;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "drover-test-XXXXXX").string();
  DROVER_CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code trouble;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", trouble)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto stat = stat_of(name);  // absent if it ended meanwhile
    if (stat && stat->parent == pid) children.push_back(static_cast<pid_t>(std::stol(name)));
  }
  std::sort(children.begin(), children.end());
  return children;
}

bool process_gone(pid_t pid) {
  const auto stat = stat_of(std::to_string(pid));
  return !stat || stat->state == 'Z' || stat->state == 'X';
}

bool wait_until_gone(pid_t pid, std::chrono::milliseconds deadline) {
  const int fd = open_process(pid);
  if (fd < 0) return process_gone(pid);
  pollfd polled = {fd, POLLIN, 0};
  const auto until = Clock::now() + deadline;
  while (::poll(&polled, 1, milliseconds_until(until)) < 0 && errno == EINTR) continue;
  ::close(fd);
  return process_gone(pid);
}

}  // namespace drover::testing_support
