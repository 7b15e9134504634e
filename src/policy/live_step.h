// LiveStep: decides again about an open step while gradients arrive. It conditions the step's
// forecast on the arrivals so far, and finds how long the step should still wait.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "forecast/forecast.h"
#include "forecast/remaining.h"
#include "policy/objective.h"
#include "policy/policy.h"
#include "policy/stop_search.h"

namespace drover {

class LiveStep {
 public:
  // The result of a review.
  struct Revision {
    uint32_t arrived = 0;   // number of workers that have arrived
    bool closes = false;    // close the step now
    bool changed = false;   // `plan` differs from the plan before
    WaitPlan plan;          // unless the step closes
    uint32_t at_least = 1;  // arrivals that the step needs even after plan.until
    Review next;            // when to review again
  };

  // `seed` is for the samples that replace those that have become impossible.
  explicit LiveStep(uint64_t seed) : seed_(seed) {}

  // Starts a step. `forecast` is by worker or sorted, as the forecaster returned it. `shares` are
  // the weights of the workers' gradients; empty: 1 each.
  void begin(const Forecast& forecast, std::span<const double> shares, const Terms& terms);
  // Sets the initial plan of the step. Returns when to review it.
  Review plan(const WaitPlan& plan, uint32_t at_least, double expected_at);
  // Nothing if the plan's last arrival is already here, so that the step closes anyway.
  // REQUIRES: begin() and plan() were called for this step.
  std::optional<Revision> review(const StepProgress& progress);

  uint32_t workers() const { return remaining_.workers(); }

 private:
  void mark_arrived(const StepProgress& progress);
  void find_missing_shares();

  const uint64_t seed_;
  bool sorted_ = false;
  WaitPlan plan_;
  uint32_t at_least_ = 1;
  Terms terms_;
  Remaining remaining_;
  StopSearch search_;
  std::vector<double> shares_;  // by worker; empty: 1 each
  std::vector<bool> arrived_;   // by column of the forecast
  std::vector<double> missing_shares_;
  Collected collected_;
  std::vector<double> ratios_;  // run-time over median forecast, of workers that have arrived
  double stretch_ = 1.0;        // estimated ratio of all workers' run-times to their forecasts
};

}  // namespace drover
