// DropComputePolicy: a time limit fitted once from the log of the warm-up (after Giladi et al.
// 2023).
//
// 200 limits between the shortest and the longest run-time are tried on the logged steps. A limit
// that drops a share d of the gradients and saves a share s of the time makes the steps worth
//   S_eff = (1 - d) / (1 - s) - 1
// more. The best limit stays for the rest of the run. Whole gradients are here what micro-batches
// are in the paper; and where its workers stop by themselves, here a step that misses somebody
// lasts until the limit, so that is what counts as its time. The limits are evenly spread, as
// there: one run-time out of all proportion leaves a coarse choice.
#pragma once

#include <optional>
#include <vector>

#include "policy/policy.h"
#include "policy/recent_steps.h"
#include "policy/warm_up.h"

namespace drover {

// What a limit would have done to the logged steps.
struct LimitEffect {
  double limit = 0.0;
  double dropped = 0.0;  // share of the gradients
  double saved = 0.0;    // share of the time, overhead included
  double gain() const { return (1.0 - dropped) / (1.0 - saved) - 1.0; }
};

// The best of `candidates` limits for these steps, each a list of run-times in any order that is
// not empty. REQUIRES: steps is not empty, candidates >= 2.
LimitEffect best_limit(std::vector<std::vector<double>> steps, double overhead,
                       uint32_t candidates);

class DropComputePolicy : public Policy {
 public:
  explicit DropComputePolicy(Step warmup);

  Choice decide(const Situation& situation) override;
  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;

 private:
  WarmUp warm_up_;
  RecentSteps log_;
  std::optional<LimitEffect> fitted_;
};

}  // namespace drover
