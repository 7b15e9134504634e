// ProcessGroup: the processes of a run, forked from this one, and the signals that concern them
// all.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/time.h"

namespace drover {

// What a line about a child's end has at its own end, if the child is started again.
inline constexpr std::string_view kStartedAgain = "; it is started again";

// "killed by signal 9 (Killed)" or "exited with status 1", from what wait() says.
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
  Status add(const std::string& name, int signal_if_orphaned, const std::function<int()>& body);

  enum class Restart : uint8_t { kWhileHeadLives, kAlways };
  // From here on, children that are killed by a signal are started again, unless they are killed
  // again and again as soon as they have started. REQUIRES: what add() was given stays valid.
  void restart_the_killed(Restart when = Restart::kWhileHeadLives) { restarts_ = when; }

  // Waits until all children are gone and returns the wait status of the one called `head_name`.
  // The first interruption is handed on to it, the third ends everybody. When it is gone the others
  // have `patience` to leave by themselves; without one they are let finish what they do, until
  // somebody interrupts. How each of the others ended is written to `exits_fd`, a line each.
  int supervise(const std::string& head_name, int exits_fd, std::optional<Duration> patience);

  // Somebody interrupted supervise().
  bool interrupted() const { return interrupts_ > 0; }

  void kill_all();
  // Asks the child called `name` to end.
  void terminate(const std::string& name);
  void terminate_all();

 private:
  struct Child {
    std::string name;
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
