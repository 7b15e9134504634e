// CoordinatorNode: the coordinator process, which drives a Coordinator with sockets and the real
// clock, and tells observers what happens.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordinator.h"
#include "core/run_record.h"
#include "node/acceptor.h"
#include "node/channel.h"
#include "node/checkpoint_saver.h"
#include "node/exits_reader.h"
#include "node/run_recorder.h"
#include "node/timer.h"
#include "policy/policy.h"

namespace drover {

// What the kernel should send a coordinator whose launcher has died.
inline constexpr int kLauncherLostSignal = SIGUSR1;

// While this lives, what interrupts a coordinator waits until one can hear it: between two
// incarnations of a run's coordinator there is none, and the process would be killed.
class InterruptionsHeld {
 public:
  InterruptionsHeld();
  ~InterruptionsHeld();
  InterruptionsHeld(const InterruptionsHeld&) = delete;
  InterruptionsHeld& operator=(const InterruptionsHeld&) = delete;

 private:
  sigset_t before_{};
};

struct CoordinatorNodeSettings {
  CoordinatorSettings machine;
  RunKey key;
  int listening_fd = -1;  // opened before the others were started, so that they find somebody there
  CheckpointKeeping checkpoints;
  // Where the launcher reports how processes ended, an ExitReport each. -1: nowhere.
  int exits_fd = -1;
  pid_t launcher = -1;                           // without which the run ends; -1: there is none
  std::optional<TimePoint> training_since = {};  // in an earlier incarnation
};

// Both are called a few times a second.
struct Upkeep {
  std::function<void()> show;
  std::function<Status()> save;  // what the observers have been told
};

// How a coordinator's incarnation has ended.
struct IncarnationEnd {
  std::optional<RunEnd> end;            // told to the observers; absent: the run is to start over
  std::optional<ResumeFrom> committed;  // then: what it may go on from (Coordinator::committed())
  std::optional<TimePoint> training_since = {};  // in this incarnation or an earlier one
};

// One incarnation of the coordinator, on an event loop of its own.
class CoordinatorNode {
 public:
  CoordinatorNode(const CoordinatorNodeSettings& settings, std::unique_ptr<Policy> policy,
                  const std::vector<RunObserver*>& observers, Upkeep upkeep);

  IncarnationEnd run();

 private:
  struct Member {
    std::shared_ptr<Channel> channel;
    int64_t pid = 0;
    bool here = false;  // on this machine
  };

  Status admit(const std::shared_ptr<Channel>& channel, const Hello& hello);
  Status offer_place(const std::shared_ptr<Channel>& channel, const std::string& host);
  bool lost_launcher();
  void fail_without_launcher();
  void fail(EndCause cause, const std::string& why);
  template <typename Work>
  void work(Work&& machine);
  void carry_out(CoordinatorOutput out);
  void note_memory(const Peer& id, const Member& member);
  void tick();
  void on_exit(const ExitReport& report);
  void leave();
  void wait_for_goodbyes(TimePoint deadline);

  const Upkeep upkeep_;
  boost::asio::io_context loop_{1};
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  Timer review_;  // a step is to be decided again
  ExitsReader exits_;
  const uint32_t workers_;
  Coordinator machine_;
  RunRecorder recorder_;
  const Duration before_;
  const TimePoint began_;
  const pid_t launcher_;
  CheckpointKeeper keeper_;
  std::map<Peer, Member> peers_;
  Acceptor acceptor_;
  bool leaving_ = false;
};

// Runs until the run has ended, or is to start over (CoordinatorSettings::recovers).
IncarnationEnd run_coordinator(const CoordinatorNodeSettings& settings,
                               std::unique_ptr<Policy> policy,
                               const std::vector<RunObserver*>& observers, const Upkeep& upkeep);

}  // namespace drover
