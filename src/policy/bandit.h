// BanditPolicy: learns which cutoff earns most by using it, without a model of run-times.
//
// The arms are cutoffs: every count where workers are few, 64 spread evenly where they are many. A
// step that ended with m gradients shows for every cutoff up to m exactly what it would have
// earned, and for a larger one the most it could have, had its gradient come that very moment. So
// each arm has two means, both fading (weights 1, g, g^2, ... back from the newest step, 1/(1-g) =
// `memory`, so that the policy follows change): of what it earned in the W_a steps (by weight) that
// showed it, and of the most it can have earned in all steps. What an arm earns is gradients per
// time: the mean of c / (o + x_(c)) for `throughput`; for `rate` c over the mean of o + x_(c), what
// always using it would bring in the long run; for `goodput` that of throughput times the
// efficiency of c gradients (objective.h), which the newest noise gives to all steps alike. The arm
// with the largest index wins:
//
//   min( earned_a + explore * earned_best * (sqrt(ln(1+W)/W_a) - sqrt(ln(1+W)/W)),  most_a )
//
// with W the weight of the arm seen most and `scale` what the best arm earns. This is the
// discounted upper confidence bound (Garivier & Moulines) where smaller cutoffs never need
// exploring: it looks upward only, the more rarely the worse it was, and needs no draws.
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
  void learn_late(Step, WorkerId, double) override {}  // the next steps tell

 private:
  // What is summed is 1 / (o + x) for `throughput` and `goodput`, o + x for `rate`: neither depends
  // on how many workers there are, so both outlast a change of that.
  struct Arm {
    uint32_t cutoff = 0;
    double weight = 0.0;  // of the steps that showed it
    double earned = 0.0;  // summed over those
    double most = 0.0;    // summed over all
  };

  void lay_out(uint32_t workers);
  double per_time(const Arm& arm, double sum, double weight) const;
  double earned_by(const Arm& arm) const;
  double most_by(const Arm& arm) const;
  std::string earnings(const Arm& arm) const;

  const BanditSettings settings_;
  const Objective objective_;
  WarmUp warm_up_;
  double overhead_ = 0.0;  // of the step that learn() is going to be about
  Terms terms_;            // of the step that is being decided
  uint32_t workers_ = 0;
  double weight_ = 0.0;  // of all steps
  std::vector<Arm> arms_;
  std::vector<double> arrived_;
};

}  // namespace drover
