// ShareScaling: run-times of whole mini-batches from those of shares, and back (balance.h).
//
// With `fixed` the part of a run-time that does not depend on the share, a share s of a mini-batch
// takes fixed + (whole - fixed) s.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "core/step_times.h"
#include "forecast/forecast.h"
#include "policy/policy.h"

namespace drover {

class ShareScaling {
 public:
  // The same step with the run-times of whole mini-batches. Remembers its shares for late().
  const StepTimes& whole(const StepTimes& times);
  // The run-time of a whole mini-batch, from one that came late.
  double late(Step step, WorkerId worker, double seconds) const;
  // Scales samples by worker from whole mini-batches to the shares of the step.
  static void to_shares(const Situation& situation, Forecast& samples);

 private:
  struct Dealt {
    Step step = 0;
    double fixed = 0.0;
    std::vector<double> shares;
  };
  std::deque<Dealt> dealt_;
  StepTimes whole_;
};

}  // namespace drover
