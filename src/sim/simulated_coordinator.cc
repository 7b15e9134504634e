#include "sim/simulated_coordinator.h"

#include <algorithm>
#include <utility>

namespace drover {

void SimulatedCoordinator::plan_wake() {
  const auto wake = machine_.wake_at();
  if (!wake || wake_ == *wake) return;
  wake_ = *wake;
  time_.plan(std::max(*wake, time_.now()), [this, at = *wake] {
    if (over_ || wake_ != at || machine_.ended()) return;
    wake_ = TimePoint{};
    work([&](Coordinator& machine, CoordinatorOutput& out) { machine.on_time(time_.now(), out); });
  });
}

void SimulatedCoordinator::keep(CheckpointReady ready) {
  const TimePoint began = time_.now();
  manifests_until_ = std::max(manifests_until_, began) + disk_.write_time();
  time_.plan(manifests_until_, [this, began, ready = std::move(ready)] {
    if (over_ || machine_.restarts()) return;
    const bool fails = disk_.next_write_fails();
    if (!fails) {
      disk_.make_checkpoint(ready);
      kept_(ready);
    }
    work([&](Coordinator& machine, CoordinatorOutput& out) {
      machine.on_checkpoint_kept(
          ready.version,
          fails ? Status(system_error("cannot write the manifest: the disk is full")) : done(),
          time_.now() - began, time_.now(), out);
    });
  });
}

}  // namespace drover
