// EvaluatorPresence: whether a run's evaluator has yet to join, is here, or is lost.
#pragma once

#include <cstdint>
#include <optional>

#include "core/time.h"

namespace drover {

class EvaluatorPresence {
 public:
  // It joins, for the first time or again. REQUIRES: !is_here().
  void on_joined() { state_ = State::kHere; }
  // It was lost, or has not joined in time.
  void on_lost(TimePoint now) {
    state_ = State::kLost;
    lost_at_ = now;
  }

  // It has neither joined nor was it given up.
  bool is_awaited() const { return state_ == State::kAwaited; }
  bool is_here() const { return state_ == State::kHere; }
  // Nothing unless it is lost now.
  std::optional<TimePoint> lost_since() const {
    return state_ == State::kLost ? std::optional(lost_at_) : std::nullopt;
  }

 private:
  enum class State : uint8_t { kAwaited, kHere, kLost };
  State state_ = State::kAwaited;
  TimePoint lost_at_{};
};

}  // namespace drover
