// Regression forecaster: an exponential moving average of each worker's log run-times, with
// resampled residuals.
//
// With y_t = log x_t:   level_t = level_{t-1} + alpha (y_t - level_{t-1}).
// The forecast is exp(level + e). The residual e is drawn from the worker's own recent residuals
// y_t - level_{t-1}, or from those of all workers, scaled to this worker. The fewer residuals the
// worker has, the more often the pooled ones are used.
//
// A censored run-time is imputed: drawn from the worker's forecast conditioned on exceeding the
// bound. If the run-time becomes known later, it replaces the draw, and the level is recomputed.
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
  uint32_t kept_pooled = 1024;  // residuals of all workers together
  double pooled_weight = 8.0;   // weight of the pooled residuals, in own residuals
  uint32_t samples = 0;         // per forecast; 0: by the number of workers, see sample_count()
};

class EwmaForecaster : public Forecaster {
 public:
  explicit EwmaForecaster(const EwmaSettings& settings);

  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId id, double seconds) override;
  bool ready(std::span<const WorkerId> alive) const override;
  void forecast(Step step, std::span<const WorkerId> alive, Forecast& out) override;
  // The same with this number of samples.
  void forecast(Step step, std::span<const WorkerId> alive, uint32_t samples, Forecast& out);
  std::string basis() const override;

 private:
  // A worker's estimates after some number of run-times.
  struct State {
    double level = 0.0;
    double scale = 0.0;     // decayed mean of |residual|
    uint32_t measured = 0;  // residuals in `scale`
    uint64_t updates = 0;   // run-times; 0: the worker is unknown
  };
  struct Entry {
    Step step = 0;
    double y = 0.0;
    double bound = 0.0;     // if y is imputed
    double residual = 0.0;  // y minus the level before
    bool imputed = false;
  };
  struct Worker {
    State base;  // before the oldest kept entry
    State now;
    uint32_t begin = 0;  // in the ring of entries
    uint32_t count = 0;
  };

  size_t place_of(WorkerId worker, uint32_t index) const;
  const Entry& entry(WorkerId worker, uint32_t index) const;
  Entry& entry(WorkerId worker, uint32_t index);
  void advance(State& state, Entry& entry) const;
  // Adds an entry. Returns its residual in multiples of the worker's scale.
  double append(WorkerId id, const Entry& added);
  double scale_of(const State& state) const;
  // The index in the ring of the first entry with a residual. A worker's first run-time has none.
  uint32_t first_residual(WorkerId worker) const;
  double share_of_own(WorkerId worker) const;
  // The worker itself, or a random known worker if this one is unknown.
  WorkerId stand_in(WorkerId worker, DrawStream& draws) const;
  double impute(WorkerId id, double bound, DrawStream& draws);
  double draw_time(WorkerId id, double scale, double share, double fastest,
                   DrawStream& draws) const;

  const EwmaSettings settings_;
  Step learned_ = 0;
  bool any_arrived_ = false;
  double all_ = 0.0;           // decayed count of run-times, for basis()
  double cut_short_ = 0.0;     // those of them that are censored
  double pooled_scale_ = 0.0;  // mean scale of all workers, for those with few residuals
  std::vector<Worker> workers_;
  std::vector<Entry> entries_;  // `kept` slots per worker
  std::vector<WorkerId> known_workers_;
  std::vector<float> pooled_;  // a ring of residual / scale of all workers
  size_t next_pooled_ = 0;
  std::vector<float> sorted_;        // pooled_, ascending
  std::vector<double> long_enough_;  // scratch
};

}  // namespace drover
