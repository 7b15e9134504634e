// JointForecaster: levels by worker, residuals by whole step.
//
// A draw of the next step is a level for each worker plus the whole residual vector of one past
// step (step_memory.h). How much of a level is the worker's own is a choice of the view:
//
//   kNames    each worker's own level (levels.h)
//   kCommon   one level for all, that of the middle worker: names carry nothing but their place in
//             the vector
//   kRaw      no level: past steps as they were
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/step_times.h"
#include "forecast/forecast.h"
#include "forecast/joint/levels.h"
#include "forecast/joint/step_memory.h"
#include "forecast/sampling.h"

namespace drover {

enum class View : uint8_t { kNames, kCommon, kRaw };
inline constexpr size_t kViews = 3;

// Samples that are not equally likely.
struct WeightedForecast {
  Forecast samples;
  std::vector<double> weights;  // by sample, summing to 1
};

class JointForecaster {
 public:
  explicit JointForecaster(uint64_t seed) : seed_(seed) {}

  void learn(const StepTimes& times);
  void learn_late(Step step, WorkerId worker, double seconds);
  // Steps that were seen.
  Step seen() const { return learned_; }
  bool ready() const { return usable_ > 0; }
  // REQUIRES: ready(); alive is not empty.
  void forecast(View view, Step step, std::span<const WorkerId> alive, WeightedForecast& out);
  // The last step as it is believed to have been, of these workers; in log time. For what another
  // decision would have earned in it.
  void last_step(std::span<const WorkerId> alive, std::vector<double>& times) const;
  // The last step was unlike those before it for many workers at once.
  bool changed() const { return changed_; }
  std::string basis() const;
  const Levels& levels() const { return levels_; }

 private:
  void fill(const StepTimes& times, StepMemory::Row& row);
  float beyond(WorkerId worker, float bound, float shift, DrawStream& draws);
  void pool_tails(Levels::Rule rule);
  float shift_so_far(Levels::Rule rule, const StepMemory::Row& row);
  void note_change(const StepMemory::Row& row);
  float level_of(View view, WorkerId worker) const;
  float residual_of(View view, const StepMemory::Row& row, WorkerId worker) const;
  void choose_rows(Step step, size_t workers, WeightedForecast& out);

  const uint64_t seed_;
  Levels levels_;
  Levels common_;  // of one: the middle worker
  StepMemory memory_;
  Step learned_ = 0;
  Step since_change_ = 0;
  Step usable_ = 0;  // steps with residuals
  bool changed_ = false;
  double cut_short_ = 0.0;
  double all_ = 0.0;
  std::vector<float> bounds_;
  std::vector<float> scratch_;
  std::vector<uint32_t> chosen_;
  // Residuals of all workers beyond the shift of their step: what is known, and the value. The
  // largest first.
  struct Tail {
    float known = 0.0F;
    float value = 0.0F;
  };
  double least_weight_ = 0.0;  // of rows whose residuals are looked at
  std::vector<Tail> tails_;
  std::vector<Tail> own_;
};

}  // namespace drover
