// SimulatedCoordinator: one incarnation of the run's coordinator in virtual time, with what its
// process does around it: it wakes the machine when that asks for it, and writes the manifests of
// checkpoints.
#pragma once

#include <functional>
#include <memory>

#include "coordinator/coordinator.h"
#include "sim/event_queue.h"
#include "sim/simulated_disk.h"

namespace drover {

class SimulatedCoordinator {
 public:
  // Takes what the machine says. `kept` is called for each checkpoint whose manifest is written.
  using CarryOut = std::function<void(CoordinatorOutput)>;
  using Kept = std::function<void(const CheckpointReady&)>;

  // What is handed in outlives this.
  SimulatedCoordinator(const CoordinatorSettings& settings, std::unique_ptr<Policy> policy,
                       EventQueue& time, SimulatedDisk& disk, CarryOut carry_out, Kept kept)
      : time_(time),
        disk_(disk),
        carry_out_(std::move(carry_out)),
        kept_(std::move(kept)),
        machine_(settings, std::move(policy), time.now()) {}

  const Coordinator& machine() const { return machine_; }

  // Lets the machine work, and passes on what it says. Nothing happens when it is over.
  template <typename Work>
  void work(Work&& machine) {
    if (over_) return;
    CoordinatorOutput out;
    machine(machine_, out);
    for (CheckpointReady& ready : out.checkpoints) keep(std::move(ready));
    out.checkpoints.clear();
    carry_out_(std::move(out));
    plan_wake();
  }

  // The process is over, or another has taken its place.
  void on_over() { over_ = true; }
  bool is_over() const { return over_; }

 private:
  void plan_wake();
  void keep(CheckpointReady ready);

  EventQueue& time_;
  SimulatedDisk& disk_;
  const CarryOut carry_out_;
  const Kept kept_;
  Coordinator machine_;
  TimePoint wake_{};             // when it was last asked to be woken
  TimePoint manifests_until_{};  // one is written after the other
  bool over_ = false;
};

}  // namespace drover
