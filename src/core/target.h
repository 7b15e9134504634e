// Target: what a training should reach on the test set, as people write it: "accuracy=0.97" or
// "loss=0.2".
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

  // Whether an evaluation is as good as this or better. NaN reaches nothing.
  bool reached_by(double loss, double accuracy) const {
    return kind == TargetKind::kAccuracy ? accuracy >= value : loss <= value;
  }
  bool operator==(const Target&) const = default;
};

// The error says what is expected; an accuracy of 0 or beyond 1 and a loss of 0 or less are none.
Result<Target> parse_target(std::string_view text);

// parse_target(to_text(target)) gives the same target.
std::string to_text(const Target& target);
std::string_view name_of(TargetKind kind);

}  // namespace drover
