// ProcessGroup: the processes of a run, forked from this one: restarts, interruptions and their
// end.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/peer.h"
#include "core/result.h"
#include "core/time.h"

namespace drover {

// How a process ended, from the status of wait().
ProcessExit exit_of(int wait_status);
// The same as text: "killed by signal 9 (Killed)" or "exited with status 1".
std::string describe_exit(int wait_status);

// While a group exists, SIGINT, SIGTERM, SIGHUP and SIGCHLD are blocked and handled in supervise().
// The destructor kills the remaining children.
class ProcessGroup {
 public:
  ProcessGroup();
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Forks a child that runs `body` and exits with its result. If this process dies first, the
  // kernel sends the child `signal_if_orphaned`. REQUIRES: this process has no other thread.
  Status add(const Peer& peer, int signal_if_orphaned, const std::function<int()>& body);

  enum class Restart : uint8_t { kWhileHeadRuns, kAlways };
  // From here on, children that are killed by a signal are restarted, unless they die repeatedly
  // right after starting. REQUIRES: the arguments of add() stay valid.
  void restart_killed(Restart when = Restart::kWhileHeadRuns) { restarts_ = when; }

  // Waits until all children have ended and returns the wait status of `head`.
  // The first interruption is forwarded to the head, the third kills all children. When the head
  // has ended, the other children are killed after `patience`; absent: they may run until the next
  // interruption. How each of the others ended is written to `exits_fd`, an ExitReport each.
  int supervise(const Peer& head, int exits_fd, std::optional<Duration> patience);

  // Children that ended with another status than 0, or by a signal, and were not restarted.
  struct Failure {
    Peer peer;
    int status = 0;  // see describe_exit()
  };
  const std::vector<Failure>& failures() const { return failures_; }

  // Whether supervise() has received an interruption.
  bool interrupted() const { return interrupts_ > 0; }

  void kill_all();
  // Sends a child SIGTERM.
  void terminate(const Peer& peer);
  void terminate_all();

 private:
  struct Child {
    Peer peer;
    int signal_if_orphaned = 0;
    std::function<int()> body;
    TimePoint started{};
    int quick_deaths = 0;  // in a row
  };
  struct Head {
    pid_t pid = 0;
    int status = 0;
    bool gone = false;
  };
  Status start(Child child);
  bool restart(Child child, int wait_status);
  void reap(Head& head, int exits_fd);

  sigset_t watched_{};
  sigset_t before_{};
  std::map<pid_t, Child> children_;
  std::optional<Restart> restarts_;  // absent: children are not restarted
  int interrupts_ = 0;
  std::vector<Failure> failures_;
};

}  // namespace drover
