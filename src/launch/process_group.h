// ProcessGroup: the processes of a run, forked from this one, and the signals that concern them
// all.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/event.h"
#include "core/peer.h"
#include "core/result.h"
#include "core/time.h"

namespace drover {

// How a process ended, from what wait() says.
ProcessExit exit_of(int wait_status);
// The same in words: "killed by signal 9 (Killed)" or "exited with status 1".
std::string describe_exit(int wait_status);

// From its making until its end this process handles SIGINT, SIGTERM, SIGHUP and SIGCHLD only in
// supervise(). Its end kills whoever is left.
class ProcessGroup {
 public:
  ProcessGroup();
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Forks a child that runs `body` and exits with its result. If this process dies first, the child
  // gets `signal_if_orphaned`. REQUIRES: this process has no other thread.
  Status add(const Peer& peer, int signal_if_orphaned, const std::function<int()>& body);

  enum class Restart : uint8_t { kWhileHeadLives, kAlways };
  // From here on, children that are killed by a signal are started again, unless they are killed
  // again and again as soon as they have started. REQUIRES: what add() was given stays valid.
  void restart_the_killed(Restart when = Restart::kWhileHeadLives) { restarts_ = when; }

  // Waits until all children are gone and returns the wait status of `head`.
  // The first interruption is handed on to it, the third ends everybody. When it is gone the others
  // have `patience` to leave by themselves; without one they are let finish what they do, until
  // somebody interrupts. How each of the others ended is written to `exits_fd`, an ExitReport each.
  int supervise(const Peer& head, int exits_fd, std::optional<Duration> patience);

  // Somebody interrupted supervise().
  bool interrupted() const { return interrupts_ > 0; }

  void kill_all();
  // Asks a child to end.
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
  bool start_again(Child child, int wait_status);
  void reap(Head& head, int exits_fd);

  sigset_t watched_{};
  sigset_t before_{};
  std::map<pid_t, Child> children_;
  std::optional<Restart> restarts_;  // nothing: nobody is
  int interrupts_ = 0;
};

}  // namespace drover
