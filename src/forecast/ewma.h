// Regression forecaster: a level per worker that follows its log run-times, and residuals drawn
// again from those that were seen.
//
// With y_t = log x_t:   level_t = level_{t-1} + alpha (y_t - level_{t-1}),
// the forecast is exp(level + e), where e is drawn from the worker's own recent residuals
// y_t - level_{t-1} and, the fewer these are, the more from everybody's, scaled to this worker.
//
// A run-time that was cut short is imputed: drawn from the worker's own forecast, given that it is
// longer than the bound. If it becomes known later, the draw is replaced and what followed from it
// is computed again.
#pragma once

#include <vector>

#include "forecast/forecaster.h"
#include "forecast/sampling.h"

namespace drover {

struct EwmaSettings {
  uint64_t seed = 1;
  Step warmup = 20;             // steps to see before the first forecast
  double alpha = 0.3;           // weight of the newest run-time in the level, 0 to 1
  uint32_t kept = 32;           // residuals per worker
  uint32_t kept_pooled = 1024;  // residuals of everybody
  double pooled_weight = 8.0;   // how many own residuals the pooled ones are worth together
  uint32_t samples = 0;         // of a forecast; 0: by the number of workers, see sample_count()
};

class EwmaForecaster : public Forecaster {
 public:
  explicit EwmaForecaster(const EwmaSettings& settings);

  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId id, double seconds) override;
  bool ready(std::span<const WorkerId> alive) const override;
  void forecast(Step step, std::span<const WorkerId> alive, Forecast& out) override;
  // The same with so many samples.
  void forecast(Step step, std::span<const WorkerId> alive, uint32_t samples, Forecast& out);
  std::string basis() const override;

 private:
  // What is believed of a worker after some number of run-times.
  struct State {
    double level = 0.0;
    double scale = 0.0;     // fading mean of |residual|
    uint32_t measured = 0;  // residuals in `scale`
    uint64_t updates = 0;   // 0: never heard of
  };
  struct Entry {
    Step step = 0;
    double y = 0.0;
    double bound = 0.0;     // if y is imputed
    double residual = 0.0;  // against the level before
    bool imputed = false;
  };
  struct Worker {
    State base;  // before the oldest kept entry
    State now;
    uint32_t begin = 0;  // of the ring of entries
    uint32_t count = 0;
  };

  size_t place_of(WorkerId worker, uint32_t index) const;
  const Entry& entry(WorkerId worker, uint32_t index) const;
  Entry& entry(WorkerId worker, uint32_t index);
  void advance(State& state, Entry& entry) const;
  // Its residual, in scales of the worker.
  double append(WorkerId id, const Entry& added);
  double scale_of(const State& state) const;
  // The first run-time of all has no residual: where in the ring those begin.
  uint32_t first_residual(WorkerId worker) const;
  double share_of_own(WorkerId worker) const;
  // Somebody to stand in for whoever was never heard of.
  WorkerId stand_in(WorkerId worker, DrawStream& draws) const;
  double impute(WorkerId id, double bound, DrawStream& draws);
  double draw_time(WorkerId id, double scale, double share, double fastest,
                   DrawStream& draws) const;

  const EwmaSettings settings_;
  Step learned_ = 0;
  bool anybody_arrived_ = false;
  double all_ = 0.0;  // fading counts, for basis()
  double cut_short_ = 0.0;
  double pooled_scale_ = 0.0;  // mean of the workers', for those with few residuals
  std::vector<Worker> workers_;
  std::vector<Entry> entries_;  // `kept` places a worker
  std::vector<WorkerId> heard_of_;
  std::vector<float> pooled_;  // a ring of residual / scale, of all workers alike
  size_t next_pooled_ = 0;
  std::vector<float> sorted_;        // the same, ascending
  std::vector<double> long_enough_;  // scratch
};

}  // namespace drover
