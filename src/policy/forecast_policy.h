// ForecastPolicy: a forecast of the next step's run-times, and the cutoff that promises most; live,
// it decides again inside the step as gradients arrive.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "forecast/forecaster.h"
#include "forecast/sort_rows.h"
#include "policy/hedge.h"
#include "policy/live_step.h"
#include "policy/objective.h"
#include "policy/policy.h"
#include "policy/warm_up.h"

namespace drover {

struct ForecastPolicySettings {
  Objective objective = Objective::kThroughput;
  Step warmup = 20;
  bool hedged = false;  // a time limit beside the cutoff (hedge.h)
  bool live = false;    // decides again inside the step (live_step.h)
  uint64_t seed = 1;    // live: of which samples stand in for those that came to nothing
};

class ForecastPolicy : public Policy {
 public:
  // REQUIRES: forecaster is not null.
  ForecastPolicy(std::string name, std::unique_ptr<Forecaster> forecaster,
                 const ForecastPolicySettings& settings);

  // Waits for everybody during the warm-up, and as long as the forecaster knows too little of those
  // alive.
  Choice decide(const Situation& situation) override;
  std::optional<Choice> reconsider(const StepProgress& midway) override;
  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;

 private:
  void scale_to_shares(const Situation& situation);

  const std::string name_;
  const std::unique_ptr<Forecaster> forecaster_;
  WarmUp warm_up_;
  Goal goal_;
  bool chosen_ = false;  // the last decision by its promise: only such a step tells what we reach
  const ForecastPolicySettings settings_;
  RowSorter sorter_;
  CutoffSearch search_;
  HedgeSearch hedge_search_;
  Forecast forecast_;

  // Where work is balanced: what steps of late were dealt, since forecasters are told of whole
  // mini-batches.
  struct Dealt {
    Step step = 0;
    double fixed = 0.0;
    std::vector<double> shares;
  };
  std::deque<Dealt> dealt_;

  LiveStep live_;  // the open step, if it is decided again inside
};

}  // namespace drover
