// EvaluatorPresence: whether a run's evaluator is awaited, connected or lost.
#pragma once

#include <cstdint>
#include <optional>

#include "core/time.h"

namespace drover {

class EvaluatorPresence {
 public:
  // The evaluator joins, for the first time or after a loss. REQUIRES: !is_here().
  void on_joined() { state_ = State::kHere; }
  // The evaluator was lost, or has not joined in time.
  void on_lost(TimePoint now) {
    state_ = State::kLost;
    lost_at_ = now;
  }

  // Whether the evaluator has never joined and is still waited for.
  bool is_awaited() const { return state_ == State::kAwaited; }
  bool is_here() const { return state_ == State::kHere; }
  // Absent unless the evaluator is lost now.
  std::optional<TimePoint> lost_since() const {
    return state_ == State::kLost ? std::optional(lost_at_) : std::nullopt;
  }

 private:
  enum class State : uint8_t { kAwaited, kHere, kLost };
  State state_ = State::kAwaited;
  TimePoint lost_at_{};
};

}  // namespace drover
