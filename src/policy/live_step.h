// LiveStep: a step that is decided again while gradients arrive: its forecast given what has
// arrived, and what is still worth waiting for.
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
  // What a review comes to.
  struct Revision {
    uint32_t arrived = 0;   // so many workers have arrived
    bool closes = false;    // the step ends now
    bool changed = false;   // `plan` is not the one before
    WaitPlan plan;          // what is waited for, unless it closes
    uint32_t at_least = 1;  // arrivals that are waited for beyond plan.until
    Review next;            // when to review again
  };

  // `seed`: of the samples that stand in for those that have become impossible.
  explicit LiveStep(uint64_t seed) : seed_(seed) {}

  // A step begins. `forecast` is as the forecaster made it, by worker or sorted. `shares`: what
  // each worker's gradient counts; empty: 1 each.
  void begin(const Forecast& forecast, std::span<const double> shares, const Terms& terms);
  // What the step waits for to begin with. Returns when to review it.
  Review plan(const WaitPlan& plan, uint32_t at_least, double expected_at);
  // Nothing if there is nothing to decide: the last arrival that is waited for is here.
  // REQUIRES: begin() and plan() were called; midway is of that step.
  std::optional<Revision> review(const StepProgress& midway);

  uint32_t workers() const { return remaining_.workers(); }

 private:
  void mark_arrived(const StepProgress& midway);
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
  Gathered gathered_;
  std::vector<double> ratios_;  // of workers that have arrived: run-time over its forecast
  double stretch_ = 1.0;        // how much longer than forecast all workers seem to take
};

}  // namespace drover
