#include "node/family.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "node/clock.h"
#include "node/log.h"

namespace drover {
namespace {

constexpr timespec kPatience{.tv_sec = 0, .tv_nsec = 200'000'000};

}  // namespace

std::string describe_exit(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    return "killed by signal " + std::to_string(number) + " (" + ::strsignal(number) + ")";
  }
  return "exited with status " + std::to_string(WEXITSTATUS(wait_status));
}

Family::Family() {
  sigemptyset(&watched_);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&watched_, number);
  sigprocmask(SIG_BLOCK, &watched_, &before_);
}

Family::~Family() {
  kill_all();
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Status Family::add(const std::string& name, int signal_if_orphaned,
                   const std::function<int()>& body) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return system_error("cannot start " + name + ": " + std::strerror(errno) +
                        ". Try fewer workers, or raise the limit on processes (ulimit -u).");
  }
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, signal_if_orphaned);
    if (::getppid() != parent) ::_exit(1);
    ::prctl(PR_SET_NAME, ("drover " + name).c_str());
    // Ctrl-C reaches all processes of a terminal at once; only the head acts on it, and tells the
    // others.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    set_log_name(name);
    const int status = body();
    std::fflush(nullptr);
    // Not exit(): what the parent registered to be done at its end is not the child's to do.
    ::_exit(status);
  }
  children_[pid] = name;
  return done();
}

int Family::supervise(const std::string& head, int exits_fd, std::optional<Duration> patience) {
  pid_t head_pid = 0;
  for (const auto& [pid, name] : children_) {
    if (name == head) head_pid = pid;
  }
  int head_status = 0;
  bool head_gone = false;
  std::optional<TimePoint> deadline;
  while (!children_.empty()) {
    const int number = sigtimedwait(&watched_, nullptr, &kPatience);
    if (number == SIGINT || number == SIGTERM || number == SIGHUP) {
      ++interrupts_;
      if (interrupts_ == 1 && !head_gone) ::kill(head_pid, SIGTERM);
      if (head_gone) terminate_all();
      if (interrupts_ == 3) kill_all();  // somebody insists
    }
    reap(head_pid, exits_fd, head_status, head_gone);
    if (head_gone && !deadline && patience) deadline = clock_now() + *patience;
    if (deadline && clock_now() > *deadline) kill_all();
  }
  return head_status;
}

void Family::reap(pid_t head, int exits_fd, int& head_status, bool& head_gone) {
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto child = children_.find(pid);
    if (child == children_.end()) continue;  // this process has other children too
    const std::string line = child->second + ": " + describe_exit(status) + "\n";
    children_.erase(child);
    if (pid == head) {
      head_status = status;
      head_gone = true;
    } else {
      // A full pipe or a head that is gone loses only this remark.
      [[maybe_unused]] const ssize_t written = ::write(exits_fd, line.data(), line.size());
    }
  }
}

void Family::terminate(const std::string& name) {
  for (const auto& [pid, each] : children_) {
    if (each == name) ::kill(pid, SIGTERM);
  }
}

void Family::terminate_all() {
  for (const auto& [pid, name] : children_) ::kill(pid, SIGTERM);
}

void Family::kill_all() {
  for (const auto& [pid, name] : children_) ::kill(pid, SIGKILL);
}

}  // namespace drover
