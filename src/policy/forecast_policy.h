// ForecastPolicy: chooses the cutoff with the highest expected value under a forecast of the step's
// run-times. With `live`, it decides again inside the step as gradients arrive.
#pragma once

#include <memory>
#include <string>

#include "forecast/forecaster.h"
#include "forecast/sort_rows.h"
#include "policy/hedge.h"
#include "policy/live_step.h"
#include "policy/objective.h"
#include "policy/policy.h"
#include "policy/share_scaling.h"
#include "policy/warm_up.h"

namespace drover {

struct ForecastPolicySettings {
  Objective objective = Objective::kThroughput;
  Step warmup = 20;
  bool hedged = false;  // a time limit in addition to the cutoff (hedge.h)
  bool live = false;    // decide again inside the step (live_step.h)
  uint64_t seed = 1;    // with live: of the samples that replace impossible ones (remaining.h)
};

class ForecastPolicy : public Policy {
 public:
  // REQUIRES: forecaster is not null.
  ForecastPolicy(std::string name, std::unique_ptr<Forecaster> forecaster,
                 const ForecastPolicySettings& settings);

  // Waits for all workers during the warm-up, and until the forecaster has enough data about each
  // worker alive.
  Choice decide(const Situation& situation) override;
  std::optional<Choice> reconsider(const StepProgress& progress) override;
  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;

 private:
  const std::string name_;
  const std::unique_ptr<Forecaster> forecaster_;
  WarmUp warm_up_;
  Goal goal_;
  bool chosen_ = false;  // the last decision used a forecast; goal_ learns only from such steps
  const ForecastPolicySettings settings_;
  RowSorter sorter_;
  CutoffSearch search_;
  HedgeSearch hedge_search_;
  Forecast forecast_;

  ShareScaling scaling_;  // forecasters by worker learn of whole mini-batches

  LiveStep live_;  // the open step; used with settings_.live
};

}  // namespace drover
