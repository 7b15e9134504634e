// Policies that need no forecast and learn nothing: sync, static, deadline.
#pragma once

#include "policy/policy.h"

namespace drover {

class UnlearningPolicy : public Policy {
 public:
  void learn(const StepTimes&) override {}
  void learn_late(Step, WorkerId, double) override {}
};

// Waits for all workers alive.
class SyncPolicy : public UnlearningPolicy {
 public:
  Choice decide(const Situation& situation) override;
};

// Waits for a fixed share of the workers alive, to the nearest whole worker. Chen et al. (2016)
// found 100 of 106 good: a share of 0.943.
class StaticSharePolicy : public UnlearningPolicy {
 public:
  // REQUIRES: 0 < share <= 1.
  explicit StaticSharePolicy(double share);
  Choice decide(const Situation& situation) override;

 private:
  const double share_;
};

// Waits for a fixed number of workers. The Decider lowers it to the number of workers alive.
class StaticCountPolicy : public UnlearningPolicy {
 public:
  // REQUIRES: count >= 1.
  explicit StaticCountPolicy(uint32_t count);
  Choice decide(const Situation& situation) override;

 private:
  const uint32_t count_;
};

// Waits for all workers alive, up to a fixed time limit.
class DeadlinePolicy : public UnlearningPolicy {
 public:
  // REQUIRES: limit > 0.
  explicit DeadlinePolicy(double limit);
  Choice decide(const Situation& situation) override;

 private:
  const double limit_;
};

}  // namespace drover
