// OraclePolicy: the best cutoff, computed from the step's future run-times.
#pragma once

#include <vector>

#include "policy/catalogue.h"
#include "policy/objective.h"
#include "policy/policy.h"

namespace drover {

class OraclePolicy : public Policy {
 public:
  // REQUIRES: foresight is not empty.
  OraclePolicy(Objective objective, Foresight foresight);

  Choice decide(const Situation& situation) override;
  void learn(const StepTimes& times) override { goal_.learn(times); }
  void learn_late(Step, WorkerId, double) override {}

 private:
  Goal goal_;
  const Foresight foresight_;
};

}  // namespace drover
