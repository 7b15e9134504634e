// Policies that need no forecast and learn nothing.
#pragma once

#include "policy/policy.h"

namespace drover {

// Waits for everybody alive.
class SyncPolicy : public Policy {
 public:
  Choice decide(const Situation& situation) override;
  void learn(const StepTimes&) override {}
  void learn_late(Step, WorkerId, double) override {}
};

}  // namespace drover
