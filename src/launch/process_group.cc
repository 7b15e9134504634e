#include "launch/process_group.h"

#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "core/event_text.h"
#include "node/clock.h"
#include "node/exit_report.h"
#include "node/log.h"

namespace drover {
namespace {

// The kernel keeps 15 letters. A longer name is shortened before its number.
std::string process_title(const std::string& name) {
  constexpr size_t kLetters = 15;
  std::string title = "drover " + name;
  const size_t space = title.rfind(' ');
  if (title.size() > kLetters && space > sizeof("drover"))
    title.erase(space - (title.size() - kLetters), title.size() - kLetters);
  return title;
}

constexpr timespec kPatience{.tv_sec = 0, .tv_nsec = 200'000'000};
constexpr Duration kQuick = std::chrono::seconds(10);  // a death within this counts as quick
constexpr int kQuickDeathsMax = 5;                     // in a row

}  // namespace

ProcessExit exit_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {.by_signal = true, .number = WTERMSIG(wait_status)};
  return {.by_signal = false, .number = WEXITSTATUS(wait_status)};
}

std::string describe_exit(int wait_status) { return exit_text(exit_of(wait_status)); }

ProcessGroup::ProcessGroup() {
  sigemptyset(&watched_);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&watched_, number);
  sigprocmask(SIG_BLOCK, &watched_, &before_);
}

ProcessGroup::~ProcessGroup() {
  kill_all();
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Status ProcessGroup::add(const Peer& peer, int signal_if_orphaned,
                         const std::function<int()>& body) {
  return start({.peer = peer, .signal_if_orphaned = signal_if_orphaned, .body = body});
}

Status ProcessGroup::start(Child child) {
  const std::string name = name_of(child.peer);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return system_error("cannot start " + name + ": " + std::strerror(errno) +
                        ". Try fewer workers, or raise the limit on processes (ulimit -u).");
  }
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, child.signal_if_orphaned);
    if (::getppid() != parent) ::_exit(1);
    ::prctl(PR_SET_NAME, process_title(name).c_str());
    // Ctrl-C signals all processes of a terminal at once. Only the head acts on it.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    set_log_name(name);
    const int status = child.body();
    std::fflush(nullptr);
    // Not exit(): the child must not run the parent's exit handlers.
    ::_exit(status);
  }
  child.started = clock_now();
  children_[pid] = std::move(child);
  return done();
}

// Restarts a child that was killed. One that exited by itself is not restarted.
bool ProcessGroup::restart(Child child, int wait_status) {
  if (!restarts_ || interrupts_ > 0 || !WIFSIGNALED(wait_status)) return false;
  const bool quick = clock_now() - child.started < kQuick;
  child.quick_deaths = quick ? child.quick_deaths + 1 : 0;
  const std::string name = name_of(child.peer);
  if (child.quick_deaths > kQuickDeathsMax) {
    spdlog::error("{} was {} {} times in a row within {} s of its start; not restarting it", name,
                  describe_exit(wait_status), child.quick_deaths,
                  std::chrono::duration_cast<std::chrono::seconds>(kQuick).count());
    return false;
  }
  spdlog::warn("{} was {}; restarting it", name, describe_exit(wait_status));
  if (const Status started = start(std::move(child)); !started) {
    spdlog::error("{}", started.error().message);
    return false;
  }
  return true;
}

int ProcessGroup::supervise(const Peer& head_peer, int exits_fd, std::optional<Duration> patience) {
  Head head;
  for (const auto& [pid, child] : children_) {
    if (child.peer == head_peer) head.pid = pid;
  }
  std::optional<TimePoint> deadline;
  while (!children_.empty()) {
    const int number = sigtimedwait(&watched_, nullptr, &kPatience);
    if (number == SIGINT || number == SIGTERM || number == SIGHUP) {
      ++interrupts_;
      if (interrupts_ == 1 && !head.gone) ::kill(head.pid, SIGTERM);
      if (head.gone) terminate_all();
      if (interrupts_ == 3) kill_all();
    }
    reap(head, exits_fd);
    if (head.gone && !deadline && patience) deadline = clock_now() + *patience;
    if (deadline && clock_now() > *deadline) kill_all();
  }
  return head.status;
}

void ProcessGroup::reap(Head& head, int exits_fd) {
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    auto found = children_.extract(pid);
    if (found.empty()) continue;  // this process has other children too
    const Peer peer = found.mapped().peer;
    const bool may = !head.gone || restarts_ == Restart::kAlways;
    const bool again = may && restart(std::move(found.mapped()), status);
    if (!again && status != 0 && interrupts_ == 0) failures_.push_back({peer, status});
    if (pid != head.pid) {
      // A report may be lost, if the pipe is full or the head has ended.
      const ExitReportBytes report =
          bytes_of({.peer = peer, .exit = exit_of(status), .restarted = again});
      [[maybe_unused]] const ssize_t written = ::write(exits_fd, report.data(), report.size());
    } else if (again) {
      for (const auto& [each, child] : children_) {
        if (child.peer == peer) head.pid = each;
      }
    } else {
      head.status = status;
      head.gone = true;
    }
  }
}

void ProcessGroup::terminate(const Peer& peer) {
  for (const auto& [pid, child] : children_) {
    if (child.peer == peer) ::kill(pid, SIGTERM);
  }
}

void ProcessGroup::terminate_all() {
  for (const auto& [pid, child] : children_) ::kill(pid, SIGTERM);
}

void ProcessGroup::kill_all() {
  for (const auto& [pid, child] : children_) ::kill(pid, SIGKILL);
}

}  // namespace drover
