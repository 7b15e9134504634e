// Target: the accuracy or loss that training should reach on the test set. Text form:
// "accuracy=0.97" or "loss=0.2".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace drover {

enum class TargetKind : uint8_t { kAccuracy, kLoss };

struct Target {
  TargetKind kind = TargetKind::kAccuracy;
  double value = 0.0;

  // Whether an evaluation is at least as good as the target. NaN never is.
  bool reached_by(double loss, double accuracy) const {
    return kind == TargetKind::kAccuracy ? accuracy >= value : loss <= value;
  }
  bool operator==(const Target&) const = default;
};

// An accuracy must be above 0 and at most 1, a loss above 0. The error says what is expected.
Result<Target> parse_target(std::string_view text);

// parse_target(to_text(target)) gives the same target.
std::string to_text(const Target& target);
std::string_view name_of(TargetKind kind);

}  // namespace drover
