// ImputedSteps: the run-times seen in a run, with those that were cut short imputed.
//
// What is missing of a step is drawn once from the forecast of that very step, beyond the bound
// (impute.h). Models look back on the draw as if it had been seen; a fit knows the bound.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/step_times.h"
#include "forecast/forecast.h"
#include "forecast/learned/history.h"

namespace drover {

// What stands in for a run-time that was cut short.
enum class Imputing : uint8_t {
  kBound,      // the bound itself: naive
  kTruncated,  // a draw from the forecast beyond the bound
};

class ImputedSteps {
 public:
  ImputedSteps(uint64_t seed, Imputing imputing) : seed_(seed), imputing_(imputing) {}

  // The forecast of the next step: column i belongs to alive[i], which ascends. If not `by_worker`
  // the rows are order statistics, and a worker that is cut short is one of those beyond the bound.
  void expect(std::span<const WorkerId> alive, const Forecast& forecast, bool by_worker);

  // A step has ended. Returns its row by worker, which stays until the next call. Steps come in
  // order; workers may only become more.
  std::span<const PastTime> add(const StepTimes& times);

  // A run-time that was cut short is known after all.
  void correct(Step step, WorkerId worker, float log_time) {
    history_.correct(step, worker, log_time);
  }

  const History& history() const { return history_; }
  // Steps added in all; the history keeps the newest.
  uint64_t count() const { return count_; }
  // ", 3 % of run-times cut short", over the last steps, for the end of a forecast's basis.
  std::string cut_short_text() const;

 private:
  float imputed(const StepTimes& times, WorkerId worker, float log_bound);

  const uint64_t seed_;
  const Imputing imputing_;
  History history_;
  uint64_t count_ = 0;
  double cut_short_ = 0.0;  // fading, as all_
  double all_ = 0.0;

  // Of the step that comes next; no workers: none.
  std::vector<WorkerId> alive_;
  Forecast expected_;
  bool by_worker_ = true;

  std::vector<PastTime> row_;
  std::vector<float> column_;
};

}  // namespace drover
