// MadPolicy: a time limit of median + k * MAD (median absolute deviation) of recent run-times.
//
// Both medians are over all run-times of the last steps, pooled. A censored run-time counts as its
// bound. Both medians stay exact as long as fewer than half of the run-times are censored, which
// the quorum ensures.
#pragma once

#include <vector>

#include "policy/policy.h"
#include "policy/recent_steps.h"
#include "policy/warm_up.h"

namespace drover {

struct MadSettings {
  double deviations = 3.0;  // k
  uint32_t window = 20;     // steps
  double quorum = 0.5;      // share of the workers alive that a step needs even beyond the limit
};

class MadPolicy : public Policy {
 public:
  MadPolicy(const MadSettings& settings, Step warmup);

  Choice decide(const Situation& situation) override;
  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;

 private:
  const MadSettings settings_;
  WarmUp warm_up_;
  RecentSteps recent_;
  std::vector<double> pool_;
};

// The middle value, or the mean of the two in the middle; changes the order of `values`.
// REQUIRES: not empty.
double median(std::vector<double>& values);

}  // namespace drover
