// WorkerStates: which workers of a run are alive, from its events.
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
  kFinished,  // it had done what it was to do
};
std::string_view name_of(WorkerState state);

class WorkerStates {
 public:
  // In the order in which they happened.
  void add(const EventRecord& event);

  // A worker that no event is about is alive.
  WorkerState state_of(WorkerId worker) const;
  uint64_t losses() const { return losses_; }  // times that a worker was lost

 private:
  std::vector<WorkerState> states_;
  uint64_t losses_ = 0;
};

}  // namespace drover
