// Empirical forecaster: the distribution of each worker's recent run-times, with a tail from the
// run-times of all workers.
//
// Each worker has a Kaplan-Meier curve over its recent run-times and bounds, with weights that
// decay with age. The numbers of run-times and of bounds are limited separately, so that a worker
// that is censored in every step keeps its last known run-times. Beyond the bounds only these are
// at risk, so they form the tail however old they are.
//
// The probability beyond the last bound of a curve comes from the pooled curve of all workers,
// conditioned on exceeding the bound. Beyond all observations it comes from a Pareto tail. The
// pooled curve is over the ratios of run-times to their worker's median, so that slow workers do
// not distort the tail of a fast one. A worker that never arrived has no median. It is forecast
// from the run-times of all workers.
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
  bool per_worker = true;          // false: all workers alike, by the pooled run-times
  double half_life = 4.0;          // of the weight of a worker's own run-times, in steps
  double pooled_half_life = 20.0;  // of the weight of all workers' run-times, in steps
  uint32_t kept_times = 32;        // per worker
  uint32_t kept_bounds = 16;       // per worker
  double pooled_share = 1.0;       // weight of the pooled run-times, in new run-times of one's own
  double tail_exponent = 4.0;      // of the Pareto tail beyond all observations
  uint32_t samples = 0;            // per forecast; 0: by the number of workers, see sample_count()
};

class EcdfForecaster : public Forecaster {
 public:
  explicit EcdfForecaster(const EcdfSettings& settings);

  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;
  bool ready(std::span<const WorkerId> alive) const override;
  void forecast(Step step, std::span<const WorkerId> alive, Forecast& out) override;
  // The same with this number of samples.
  void forecast(Step step, std::span<const WorkerId> alive, uint32_t samples, Forecast& out);
  std::string basis() const override;

 private:
  struct Seen {
    float time = 0.0F;
    float ratio = 0.0F;  // to the worker's median before this step; 0: it had none
    uint32_t tag = 0;    // 2 * step + (1 if it is a bound)
    bool censored() const { return (tag & 1U) != 0; }
    uint32_t step() const { return tag >> 1U; }
  };
  struct Worker {
    uint32_t times = 0;   // number of run-times kept
    uint32_t bounds = 0;  // number of bounds kept
    float median = 0.0F;  // 0: never arrived
  };

  uint32_t stride() const { return settings_.kept_times + settings_.kept_bounds; }
  std::span<Seen> kept(WorkerId worker);
  void insert(WorkerId worker, const Seen& seen);
  void erase(WorkerId worker, size_t index);
  double weight_of_age(uint32_t age) const;
  void sample_worker(WorkerId worker, uint32_t step, DrawStream& draws, std::span<float> out);
  // Fits curve_ to the worker's observations, weighted as of `step`. Returns their total weight.
  double fit(WorkerId worker, uint32_t step);
  void update_median(WorkerId worker, uint32_t step);
  // Quantiles `u`, ascending, of the pooled curve conditioned on exceeding `bound`. The curve is in
  // multiples of `unit`.
  void sample_beyond(double bound, const SurvivalCurve& pooled, double unit,
                     std::span<const double> u, std::span<float> out) const;

  const EcdfSettings settings_;
  Step learned_ = 0;
  Step first_step_ = 0;  // steps are kept relative to it
  Step last_step_ = 0;
  bool any_arrived_ = false;
  double all_ = 0.0;        // decayed count of run-times, for basis()
  double cut_short_ = 0.0;  // those of them that are censored
  std::vector<Worker> workers_;
  std::vector<Seen> seen_;       // stride() slots per worker, used ones first, ascending in time
  PooledTimes pooled_;           // run-times
  PooledTimes ratios_;           // of run-times to their worker's median
  std::vector<double> weights_;  // by age

  // Scratch.
  std::vector<Observation> observations_;
  SurvivalCurve curve_;
  std::vector<float> column_;
  std::vector<uint32_t> ends_;
  std::vector<double> strata_;
};

}  // namespace drover
