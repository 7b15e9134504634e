#include "view/worker_states.h"

#include <algorithm>

namespace drover {

std::string_view name_of(WorkerState state) {
  switch (state) {
    case WorkerState::kAlive:
      return "alive";
    case WorkerState::kLost:
      return "lost";
    case WorkerState::kFinished:
      return "finished";
  }
  return "unknown";
}

void WorkerStates::add(const EventRecord& event) {
  // After a restart all processes join again without a `joined` event. A worker that does not join
  // is recorded as lost again. A worker that had finished has no process.
  if (event.kind() == EventKind::kRestarted)
    std::replace(states_.begin(), states_.end(), WorkerState::kLost, WorkerState::kAlive);
  if (!event.peer || event.peer->role != Role::kWorker) return;
  const auto set = [&](WorkerState state) {
    if (event.peer->index >= states_.size()) states_.resize(event.peer->index + size_t{1});
    states_[event.peer->index] = state;
  };
  if (event.kind() == EventKind::kLost) {
    set(WorkerState::kLost);
    ++losses_;
  }
  if (event.kind() == EventKind::kLeft) set(WorkerState::kFinished);
  if (event.kind() == EventKind::kJoined) set(WorkerState::kAlive);
}

WorkerState WorkerStates::state_of(WorkerId worker) const {
  return worker < states_.size() ? states_[worker] : WorkerState::kAlive;
}

}  // namespace drover
