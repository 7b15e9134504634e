// Empirical forecaster: every worker's own recent run-times, as far as they reach, and everybody's
// beyond.
//
// A Kaplan-Meier curve per worker from a bounded number of its recent run-times and bounds, weights
// fading with age. Run-times and bounds are bounded apart, so that a worker that has been cut short
// ever since keeps the last true run-times it had: beyond the bounds only these are left at risk,
// so they carry the tail however old they are.
//
// What a curve leaves over (its largest observation is a bound) is drawn from the pooled curve of
// all workers, given that it is longer than the bound; where nobody has ever been seen beyond it,
// from a Pareto tail. Pooled are not the run-times themselves but their ratios to each worker's
// median, so that the tail of a fast worker is not made of slow workers. A worker that never
// arrived has no median; it is forecast by everybody's run-times.
#pragma once

#include <vector>

#include "forecast/forecaster.h"
#include "forecast/kaplan_meier.h"
#include "forecast/pooled_times.h"
#include "forecast/sampling.h"

namespace drover {

struct EcdfSettings {
  uint64_t seed = 1;
  Step warmup = 20;                // steps to see before the first forecast
  bool per_worker = true;          // or all workers alike, by the pooled run-times
  double half_life = 4.0;          // in steps, of the weight of a worker's own run-times
  double pooled_half_life = 20.0;  // and of everybody's
  uint32_t kept_times = 32;        // per worker
  uint32_t kept_bounds = 16;       // per worker
  double pooled_share = 1.0;       // how many new run-times everybody's are worth beside one's own
  double tail_exponent = 4.0;      // of the guess beyond everything seen
  uint32_t samples = 0;            // of a forecast; 0: by the number of workers, see sample_count()
};

class EcdfForecaster : public Forecaster {
 public:
  explicit EcdfForecaster(const EcdfSettings& settings);

  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;
  bool ready(std::span<const WorkerId> alive) const override;
  void forecast(Step step, std::span<const WorkerId> alive, Forecast& out) override;
  // The same with so many samples.
  void forecast(Step step, std::span<const WorkerId> alive, uint32_t samples, Forecast& out);
  std::string basis() const override;

 private:
  struct Seen {
    float time = 0.0F;
    float ratio = 0.0F;  // to the worker's median before, if it had any
    uint32_t tag = 0;    // 2 * step + (1 if it is a bound)
    bool censored() const { return (tag & 1U) != 0; }
    uint32_t step() const { return tag >> 1U; }
  };
  struct Worker {
    uint32_t times = 0;  // how many of each are kept
    uint32_t bounds = 0;
    float median = 0.0F;  // 0: never arrived
  };

  uint32_t stride() const { return settings_.kept_times + settings_.kept_bounds; }
  std::span<Seen> kept(WorkerId worker);
  void insert(WorkerId worker, const Seen& seen);
  void erase(WorkerId worker, size_t index);
  double weight_of_age(uint32_t age) const;
  void sample_worker(WorkerId worker, uint32_t step, DrawStream& draws, std::span<float> out);
  // The worker's curve as of `step`, in curve_. Returns the weight it rests on.
  double fit(WorkerId worker, uint32_t step);
  void update_median(WorkerId worker, uint32_t step);
  // Quantiles u, ascending, of what is longer than `bound` in a pooled curve in units of `unit`.
  void sample_beyond(double bound, const SurvivalCurve& pooled, double unit,
                     std::span<const double> u, std::span<float> out) const;

  const EcdfSettings settings_;
  Step learned_ = 0;
  Step first_step_ = 0;  // steps are kept relative to it
  Step last_step_ = 0;
  bool anybody_arrived_ = false;
  double all_ = 0.0;  // fading counts, for basis()
  double cut_short_ = 0.0;
  std::vector<Worker> workers_;
  std::vector<Seen> seen_;  // `stride()` places a worker, the kept ones first, ascending in time
  PooledTimes pooled_;      // run-times
  PooledTimes ratios_;      // to their worker's median
  std::vector<double> weights_;  // by age

  // Scratch.
  std::vector<Observation> observations_;
  SurvivalCurve curve_;
  std::vector<float> column_;
  std::vector<uint32_t> ends_;
  std::vector<double> strata_;
};

}  // namespace drover
