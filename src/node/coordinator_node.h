// CoordinatorNode: the coordinator process, which drives a Coordinator with sockets and the real
// clock, and passes records of the run to observers.
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

// The signal that the kernel sends a coordinator whose launcher has died.
inline constexpr int kLauncherLostSignal = SIGUSR1;

// Blocks the coordinator's signals while it exists, so that they stay pending between two
// incarnations of the coordinator, when no handler is installed.
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
  int listening_fd = -1;  // opened before other processes start, so that they can connect at once
  CheckpointKeeping checkpoints;
  // The pipe on which the launcher reports how processes ended, an ExitReport each; -1: none.
  int exits_fd = -1;
  pid_t launcher = -1;                           // the run ends with it; -1: there is none
  std::optional<TimePoint> training_since = {};  // if training began in an earlier incarnation
};

// Both are called a few times a second.
struct Upkeep {
  std::function<void()> show;
  std::function<Status()> save;  // flushes the records that observers have received
};

// How a coordinator's incarnation has ended.
struct IncarnationEnd {
  std::optional<RunEnd> end;                     // as recorded; absent: the run is to restart
  std::optional<ResumeFrom> committed;           // for a restart: see Coordinator::committed()
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
    bool local = false;  // on this machine
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
  void stop_when_sent(TimePoint deadline);

  const Upkeep upkeep_;
  boost::asio::io_context loop_{1};
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  Timer wake_up_;  // for Coordinator::wake_at()
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

// Returns when the run has ended, or is to restart (CoordinatorSettings::recovers).
IncarnationEnd run_coordinator(const CoordinatorNodeSettings& settings,
                               std::unique_ptr<Policy> policy,
                               const std::vector<RunObserver*>& observers, const Upkeep& upkeep);

}  // namespace drover
