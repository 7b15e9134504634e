// WorkerStates: the state of each worker of a run, derived from its events.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/event.h"
#include "core/ids.h"

namespace drover {

enum class WorkerState : uint8_t {
  kAlive,
  kLost,
  kFinished,  // it left after it had finished its work
};
std::string_view name_of(WorkerState state);

class WorkerStates {
 public:
  // REQUIRES: events are added in chronological order.
  void add(const EventRecord& event);

  // A worker without events is alive.
  WorkerState state_of(WorkerId worker) const;
  uint64_t losses() const { return losses_; }  // number of losses of workers

 private:
  std::vector<WorkerState> states_;
  uint64_t losses_ = 0;
};

}  // namespace drover
