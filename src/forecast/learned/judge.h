// Judge: compares how well forecasters predicted the last steps, says how far each is to be
// believed, and disables a model that has gone stale.
//
// In each step some of the workers are taken for a small cluster, and every candidate's forecast of
// their order of arrivals is scored (arrival_score.h). The deviations that all workers of a step
// had in common are learned on the way and added to later forecasts (common_shift.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/step_times.h"
#include "forecast/forecast.h"
#include "forecast/learned/arrival_score.h"
#include "forecast/learned/common_shift.h"
#include "forecast/learned/scoreboard.h"

namespace drover {

class Judge {
 public:
  // Samples that each candidate forecasts of the workers that are judged.
  static constexpr uint32_t kSamples = 64;
  // Workers judged in a step; others in the next.
  static constexpr size_t kWorkers = 32;
  // A model is stale when its mean score is this much worse than the reference's, over at least so
  // many steps.
  static constexpr double kStale = 1.1;
  static constexpr size_t kStaleAfter = 12;

  // Candidates are 0 .. candidates - 1; one of them is the reference that models are held against.
  Judge(size_t candidates, size_t reference, uint64_t seed);

  // This candidate is another model from here on: a little worse than the reference until it has
  // been scored, and not stale.
  void restart(size_t candidate);

  // Chooses the workers that are judged in `step`; none if `alive` is empty. What was forecast of
  // others before is dropped.
  std::span<const WorkerId> begin(Step step, std::span<const WorkerId> alive);
  // The candidate's forecast of those workers, kSamples of each; left empty, the candidate is not
  // scored in this step.
  Forecast& forecast_of(size_t candidate) { return forecasts_[candidate]; }
  // The step has ended. Nothing is scored if begin() has not chosen workers since the last call, or
  // if one of them shows nothing.
  void score(const StepTimes& times);

  // By candidate, summing to 1, or all 0 if none was scored yet.
  std::span<const double> weights();
  bool is_stale(size_t candidate) const;

  // Adds what the candidate's forecasts lacked of late to the rows begin .. end - 1 of its
  // forecast.
  void adjust(size_t candidate, Step step, Forecast& forecast, uint32_t begin, uint32_t end) const;

 private:
  DrawStream shift_draws(size_t candidate, Step step) const;

  const size_t reference_;
  const uint64_t seed_;
  Scoreboard scores_;
  std::vector<CommonShift> shifts_;
  bool judging_ = false;
  std::vector<WorkerId> judged_;
  std::vector<Forecast> forecasts_;
  ArrivalScore arrivals_;
};

}  // namespace drover
