// ImputedSteps: the run-times of a run, with censored ones imputed.
//
// A censored run-time is drawn once from the forecast of its step, beyond the bound (impute.h). A
// model's forecast uses the draw as if it were known. A fit uses the bound.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/step_times.h"
#include "forecast/forecast.h"
#include "forecast/learned/history.h"

namespace drover {

// The value used for a censored run-time.
enum class Imputing : uint8_t {
  kBound,      // the bound itself: naive
  kTruncated,  // a draw from the forecast beyond the bound
};

class ImputedSteps {
 public:
  ImputedSteps(uint64_t seed, Imputing imputing) : seed_(seed), imputing_(imputing) {}

  // Sets the forecast of the next step. Column i belongs to alive[i], which ascends. Without
  // `by_worker` the rows are order statistics, and a censored run-time is drawn from all of them
  // beyond the bound.
  void expect(std::span<const WorkerId> alive, const Forecast& forecast, bool by_worker);

  // Adds a step that has ended. Returns its row by worker, valid until the next call. Steps come in
  // order; the number of workers may only grow.
  std::span<const PastTime> add(const StepTimes& times);

  // Reports the true log run-time of a censored one, which came late.
  void correct(Step step, WorkerId worker, float log_time) {
    history_.correct(step, worker, log_time);
  }

  const History& history() const { return history_; }
  // Number of steps added; the history keeps only the newest.
  uint64_t count() const { return count_; }
  // ", 3 % of run-times cut short" in the last steps, to end a forecast's basis.
  std::string cut_short_text() const;

 private:
  float imputed(const StepTimes& times, WorkerId worker, float log_bound);

  const uint64_t seed_;
  const Imputing imputing_;
  History history_;
  uint64_t count_ = 0;
  double all_ = 0.0;        // decayed count of run-times
  double cut_short_ = 0.0;  // those of them that are censored

  // The forecast of the next step; without workers: none.
  std::vector<WorkerId> alive_;
  Forecast expected_;
  bool by_worker_ = true;

  std::vector<PastTime> row_;
  std::vector<float> column_;
};

}  // namespace drover
