// SimulatedCoordinator: the process of one incarnation of the coordinator, in virtual time. It
// wakes the state machine when the machine asks for it, and writes the manifests of checkpoints.
#pragma once

#include <functional>
#include <memory>

#include "coordinator/coordinator.h"
#include "sim/event_queue.h"
#include "sim/simulated_disk.h"

namespace drover {

class SimulatedCoordinator {
 public:
  // CarryOut executes the machine's output. Kept is called for each checkpoint whose manifest was
  // written.
  using CarryOut = std::function<void(CoordinatorOutput)>;
  using Kept = std::function<void(const CheckpointReady&)>;

  // REQUIRES: the references outlive this object.
  SimulatedCoordinator(const CoordinatorSettings& settings, std::unique_ptr<Policy> policy,
                       EventQueue& time, SimulatedDisk& disk, CarryOut carry_out, Kept kept)
      : time_(time),
        disk_(disk),
        carry_out_(std::move(carry_out)),
        kept_(std::move(kept)),
        machine_(settings, std::move(policy), time.now()) {}

  const Coordinator& machine() const { return machine_; }

  // Runs `machine` on the state machine, and passes on its output. Does nothing after on_over().
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

  // The process has stopped, or another one has replaced it.
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
  TimePoint wake_{};             // the planned wake-up
  TimePoint manifests_until_{};  // when all manifests so far are written, one at a time
  bool over_ = false;
};

}  // namespace drover
