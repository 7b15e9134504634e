// Judge: scores how well forecasters predicted the last steps, computes their weights, and detects
// a stale model.
//
// In each step it treats some workers as a small cluster, and scores each candidate's forecast of
// their order of arrivals (arrival_score.h). It also learns the deviations that all workers of a
// step have in common, and adds them to later forecasts (common_shift.h).
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
  // Samples in a candidate's forecast of the judged workers.
  static constexpr uint32_t kSamples = 64;
  // Workers judged per step; the next step judges others.
  static constexpr size_t kWorkers = 32;
  // A model is stale if its mean score is worse than the reference's by this factor, after at least
  // kStaleAfter scores.
  static constexpr double kStale = 1.1;
  static constexpr size_t kStaleAfter = 12;

  // Candidates are 0 .. candidates - 1. One of them is the reference for is_stale().
  Judge(size_t candidates, size_t reference, uint64_t seed);

  // Forgets the candidate's scores, because it is another model now. Until it has scores, it counts
  // as slightly worse than the reference, and it is not stale.
  void restart(size_t candidate);

  // Chooses the workers to judge in `step`; none if `alive` is empty. Clears the forecasts of the
  // step before.
  std::span<const WorkerId> begin(Step step, std::span<const WorkerId> alive);
  // To be filled with the candidate's forecast of those workers, with kSamples rows. A candidate
  // whose forecast stays empty is not scored in this step.
  Forecast& forecast_of(size_t candidate) { return forecasts_[candidate]; }
  // Scores the step when it has ended. Does nothing if begin() has chosen no workers since the last
  // call, or if a chosen worker took no part.
  void score(const StepTimes& times);

  // By candidate, with sum 1; all 0 before the first score.
  std::span<const double> weights();
  bool is_stale(size_t candidate) const;

  // Adds the common deviations that the candidate's recent forecasts lacked to the rows
  // begin .. end - 1 of its forecast.
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
