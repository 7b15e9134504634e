// ForecastPolicy: a forecast of the next step's run-times, and the cutoff that promises most.
#pragma once

#include <memory>
#include <string>

#include "forecast/forecaster.h"
#include "forecast/sort_rows.h"
#include "policy/hedge.h"
#include "policy/objective.h"
#include "policy/policy.h"
#include "policy/warm_up.h"

namespace drover {

class ForecastPolicy : public Policy {
 public:
  // With `hedged`, a time limit beside the cutoff (hedge.h). REQUIRES: forecaster is not null.
  ForecastPolicy(std::string name, std::unique_ptr<Forecaster> forecaster, Objective objective,
                 Step warmup, bool hedged = false);

  // Waits for everybody during the warm-up, and as long as the forecaster knows too little of those
  // alive.
  Choice decide(const Situation& situation) override;
  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;

 private:
  const std::string name_;
  const std::unique_ptr<Forecaster> forecaster_;
  WarmUp warm_up_;
  Goal goal_;
  bool chosen_ = false;  // the last decision by its promise: only such a step tells what we reach
  const bool hedged_;
  RowSorter sorter_;
  CutoffSearch search_;
  HedgeSearch hedge_search_;
  Forecast forecast_;
};

}  // namespace drover
