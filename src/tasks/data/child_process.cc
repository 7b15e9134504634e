#include "tasks/data/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

#include "core/check.h"

namespace drover {
namespace {

constexpr size_t kQuotedMax = 600;

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

std::string end_of_log(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  std::string text = all.str();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text.size() > kQuotedMax) text = "..." + text.substr(text.size() - kQuotedMax);
  return text.empty() ? "no output" : text;
}

// Starts the program; the process id, or an errno value as a negative number.
pid_t spawn(const ChildCommand& command) {
  std::vector<char*> words;
  for (const std::string& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, command.folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, command.log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  // The child must not inherit the blocked signals; otherwise Ctrl-C would not reach it.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);

  pid_t child = -1;
  const int trouble = posix_spawnp(&child, words[0], &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return trouble == 0 ? child : -trouble;
}

}  // namespace

DelayedSignals::DelayedSignals() {
  const sigset_t signals = ending_signals();
  DROVER_CHECK(pthread_sigmask(SIG_BLOCK, &signals, &before_) == 0);
}

DelayedSignals::~DelayedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool DelayedSignals::pending() const {
  sigset_t arrived;
  sigpending(&arrived);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (sigismember(&arrived, signal) == 1 && sigismember(&before_, signal) == 0) return true;
  }
  return false;
}

Status run_child(const ChildCommand& command, const DelayedSignals& signals) {
  DROVER_CHECK(!command.words.empty());
  const std::string& program = command.words[0];
  const pid_t child = spawn(command);
  if (child == -ENOENT) {
    return system_error(fmt::format("{} is not installed. {}", program, command.install_hint));
  }
  if (child < 0) {
    return system_error(fmt::format("cannot start {}: {}", program, std::strerror(-child)));
  }
  int status = 0;
  bool stopped = false;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    DROVER_CHECK(ended == 0 || errno == EINTR);
    if (!stopped && signals.pending()) {
      ::kill(child, SIGTERM);
      stopped = true;
    }
    constexpr timespec kMoment{0, 50'000'000};
    ::nanosleep(&kMoment, nullptr);
  }
  if (stopped || signals.pending()) {
    return Error{ErrorKind::kStopped, fmt::format("interrupted while {} was running", program)};
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return done();
  const std::string how = WIFEXITED(status) ? fmt::format("exit status {}", WEXITSTATUS(status))
                                            : fmt::format("signal {}", WTERMSIG(status));
  return system_error(fmt::format("`{}` failed with {}: {}", fmt::join(command.words, " "), how,
                                  end_of_log(command.log)));
}

}  // namespace drover
