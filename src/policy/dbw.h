// DbwPolicy: dynamic backup workers (after Xu, Neglia, Sebastianelli 2020). It waits for the number
// of gradients with the largest expected progress per time.
//
//   k* = argmax_k gain(k) / (o + T(k))
//
// gain(k): a step of length 1/L on a function with L-Lipschitz gradients, with the mean of k
// gradients of variance V each, lowers it by at least (|g|^2 - V/k) / 2L. Up to a factor that is
// gain(k) = 1 - nu/k, with nu = V / |g|^2 the noise-to-signal ratio of one gradient; 0 for k <= nu.
// A run measures nu on its gradients. Before that, and in a replay, which has no gradients, nu is
// half of the workers alive: then the last of n gradients is worth as much as it is for throughput,
// d ln gain / dk = 1/n at k = n.
//
// T(k): mean of the newest k-th arrivals that were seen, made ascending in k by isotonic
// regression. It is at least the mean time that the newest steps waited without a k-th arrival. An
// arrival that was not seen for 100 steps is assumed to follow the last one at once, so that the
// policy tries it again.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "policy/policy.h"
#include "policy/recent_steps.h"
#include "policy/warm_up.h"

namespace drover {

struct DbwSettings {
  std::optional<double> noise;  // nu; absent: measured, and before that half of the workers alive
  uint32_t window = 5;          // arrivals per k
};

class DbwPolicy : public Policy {
 public:
  DbwPolicy(const DbwSettings& settings, Step warmup);

  Choice decide(const Situation& situation) override;
  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;

 private:
  void expect_arrivals(uint32_t alive);  // fills expected_

  const DbwSettings settings_;
  WarmUp warm_up_;
  RecentSteps recent_;
  std::deque<std::vector<double>> arrivals_;  // the first arrivals of each of the recent steps
  std::vector<double> expected_;              // T(k) at k - 1
  std::vector<double> seen_;                  // number of arrivals in that mean
  std::vector<double> bounds_;   // sum of the times that steps waited without a k-th arrival
  std::vector<double> in_vain_;  // number of those steps
};

}  // namespace drover
