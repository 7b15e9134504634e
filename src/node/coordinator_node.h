// The coordinator process: drives a Coordinator with sockets and the real clock, and tells
// observers what happens.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/run_record.h"
#include "node/checkpoint_saver.h"
#include "node/doorman.h"
#include "policy/policy.h"
#include "server/coordinator.h"

namespace drover {

// What the kernel should send a coordinator whose launcher has died.
inline constexpr int kLauncherLostSignal = SIGUSR1;

// While this lives, what interrupts a coordinator waits until one can hear it: between two lives of
// a run's coordinator there is none, and the process would be killed.
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
  std::optional<TimePoint> training_since = {};  // in an earlier life
};

// Both are called a few times a second.
struct Upkeep {
  std::function<void()> show;
  std::function<Status()> save;  // what the observers have been told
};

// How a coordinator's life has ended.
struct CoordinatorLife {
  std::optional<RunEnd> end;            // told to the observers; absent: the run is to start over
  std::optional<ResumeFrom> committed;  // then: what it may go on from (Coordinator::committed())
  std::optional<TimePoint> training_since = {};  // in this life or an earlier one
};

// Runs until the run has ended, or is to start over (CoordinatorSettings::recovers).
CoordinatorLife run_coordinator(const CoordinatorNodeSettings& settings,
                                std::unique_ptr<Policy> policy,
                                const std::vector<RunObserver*>& observers, const Upkeep& upkeep);

}  // namespace drover
