// DbwPolicy: dynamic backup workers (after Xu, Neglia, Sebastianelli 2020): the number of gradients
// that is expected to bring the training forward most per time.
//
//   k* = argmax_k gain(k) / (o + T(k))
//
// gain(k): a step of length 1/L on a function with L-Lipschitz gradients, with the mean of k
// gradients of variance V each, lowers it by at least (|g|^2 - V/k) / 2L, so that up to a factor
// gain(k) = 1 - nu/k, nu = V / |g|^2 the noise-to-signal ratio of one gradient; nothing for k <=
// nu. A run measures nu on its gradients. Until it has, and in a replay, which has none, it is half
// of the workers alive: the last of n gradients then is worth as much as throughput says,
// d ln gain / dk = 1/n at k = n.
//
// T(k): mean of the newest k-th arrivals that were seen, made ascending in k by isotonic
// regression; and at least as long as the newest steps waited without seeing a k-th. What nobody
// has seen for a hundred steps is taken to come at once after the last that was, so that the rule
// looks again.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "policy/policy.h"
#include "policy/recent_steps.h"
#include "policy/warm_up.h"

namespace drover {

struct DbwSettings {
  std::optional<double> noise;  // nu; absent: as measured, before that half of the workers alive
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
  std::vector<double> seen_;                  // how many arrivals it is the mean of
  std::vector<double> bounds_;                // what the newest steps waited in vain, summed
  std::vector<double> in_vain_;               // how many steps that were
};

}  // namespace drover
