// SameGradients: notices that all workers of a run compute the same gradient, because their scripts
// use the same data in the same order.
#pragma once

#include <cstdint>

#include "core/run_record.h"

namespace drover {

class SameGradients {
 public:
  // That many steps in a row.
  static constexpr uint32_t kSteps = 10;
  // The largest ratio of noise to signal. With data of its own each worker adds noise of about the
  // signal's size; rounding adds less than this.
  static constexpr double kRatio = 1e-6;

  static constexpr const char* kWarning =
      "warning: all workers compute the same gradient, so more workers bring nothing. Give each "
      "worker its own data: for x, y in run.batches(loader), or "
      "DistributedSampler(dataset, drover.workers(), drover.rank())";

  // Returns whether to warn now: once in a run.
  bool add(const StepRecord& step) {
    if (step.contributors < 2 || !(step.signal > 0.0)) return false;
    in_a_row_ = step.noise <= kRatio * step.signal ? in_a_row_ + 1 : 0;
    if (in_a_row_ < kSteps || warned_) return false;
    return warned_ = true;
  }

 private:
  uint32_t in_a_row_ = 0;
  bool warned_ = false;
};

}  // namespace drover
