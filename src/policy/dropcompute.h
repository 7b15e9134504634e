// DropComputePolicy: a time limit fitted once from the log of the warm-up (after Giladi et al.
// 2023).
//
// It tries 200 limits between the shortest and the longest run-time on the logged steps. A limit
// that drops a share d of the gradients and saves a share s of the time increases throughput by
//   S_eff = (1 - d) / (1 - s) - 1.
// The best limit stays for the rest of the run. The paper drops micro-batches; Drover drops whole
// gradients. In the paper workers stop by themselves; in Drover a step with a missing worker lasts
// until the limit, so the limit counts as its time. The limits are evenly spaced, as in the paper,
// so a single extreme run-time makes the choice coarse.
#pragma once

#include <optional>
#include <vector>

#include "policy/policy.h"
#include "policy/recent_steps.h"
#include "policy/warm_up.h"

namespace drover {

// The effect that a limit would have had on the logged steps.
struct LimitEffect {
  double limit = 0.0;
  double dropped = 0.0;  // share of the gradients
  double saved = 0.0;    // share of the time, overhead included
  double gain() const { return (1.0 - dropped) / (1.0 - saved) - 1.0; }
};

// The best of `candidates` limits for these steps. A step is a list of run-times in any order.
// REQUIRES: neither `steps` nor any step is empty; candidates >= 2.
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
