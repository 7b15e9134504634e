// BanditPolicy: a multi-armed bandit that learns the best cutoff by trying cutoffs, without a model
// of run-times.
//
// The arms are cutoffs: all of them for up to 64 workers, otherwise 64, evenly spaced. A step that
// closed with m gradients shows the exact reward of every cutoff up to m. For a larger cutoff it
// shows an upper bound: the reward if its gradient had arrived at the moment of the close. Each arm
// keeps the means of both: of its reward in the steps that showed it (W_a, by weight), and of the
// upper bound in all steps. Weights decay as 1, g, g^2, ... from the newest step, 1/(1-g) =
// `memory`, so that the policy follows changes.
//
// The reward of an arm is gradients per time. `throughput`: the mean of c / (o + x_(c)). `rate`: c
// over the mean of o + x_(c), which is the long-run throughput of using the arm always. `goodput`:
// the reward of `throughput` times the efficiency of c gradients (objective.h), at the newest noise
// scale for all steps. The policy uses the arm with the largest index:
//
//   min( earned_a + explore * earned_best * (sqrt(ln(1+W)/W_a) - sqrt(ln(1+W)/W)),  most_a )
//
// with W the largest weight of an arm and earned_best the reward of the best arm. This is the
// discounted upper confidence bound (Garivier & Moulines), except that smaller cutoffs never need
// exploration. So it explores only larger cutoffs, the worse ones more rarely, and needs no random
// draws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/objective.h"
#include "policy/policy.h"
#include "policy/warm_up.h"

namespace drover {

struct BanditSettings {
  double memory = 50.0;  // steps; more than 1
  double explore = 0.1;
};

class BanditPolicy : public Policy {
 public:
  BanditPolicy(const BanditSettings& settings, Objective objective, Step warmup);

  Choice decide(const Situation& situation) override;
  void learn(const StepTimes& times) override;
  void learn_late(Step, WorkerId, double) override {}  // late run-times are not needed

 private:
  // The sums are of 1 / (o + x) for `throughput` and `goodput`, and of o + x for `rate`. Neither
  // depends on the number of workers, so they stay valid when it changes.
  struct Arm {
    uint32_t cutoff = 0;
    double weight = 0.0;  // of the steps that showed its reward
    double earned = 0.0;  // sum over those steps
    double most = 0.0;    // sum of the upper bounds over all steps
  };

  void lay_out(uint32_t workers);
  double per_time(const Arm& arm, double sum, double weight) const;
  double earned_by(const Arm& arm) const;
  double most_by(const Arm& arm) const;
  std::string earnings(const Arm& arm, TimeUnit unit) const;

  const BanditSettings settings_;
  const Objective objective_;
  WarmUp warm_up_;
  double overhead_ = 0.0;  // of the step that the next learn() reports
  Terms terms_;            // of the step that is being decided
  uint32_t workers_ = 0;
  double weight_ = 0.0;  // of all steps
  std::vector<Arm> arms_;
  std::vector<double> arrived_;
};

}  // namespace drover
