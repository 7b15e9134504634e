// BayesForecaster: the learned model of run-times at work. It is fitted beside the run, takes its
// turn with simpler forecasters as well as it has foretold of late, and steps back when it has gone
// stale.
//
// Of a step that was cut short, what is missing is drawn once from the forecast of that very step,
// beyond the bound (impute.h), and looked back on as if it had been; the fit counts it as the bound
// it is. As published (`published`) the model is alone, and what was drawn counts as seen in the
// fit too.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "forecast/ecdf.h"
#include "forecast/ewma.h"
#include "forecast/forecaster.h"
#include "forecast/learned/arrival_score.h"
#include "forecast/learned/common_shift.h"
#include "forecast/learned/fitting.h"
#include "forecast/learned/history.h"
#include "forecast/learned/learned_model.h"
#include "forecast/learned/rivals.h"

namespace drover {

// What stands in for a run-time that was cut short.
enum class Imputing : uint8_t {
  kBound,      // the bound itself: naive
  kTruncated,  // a draw from the forecast beyond the bound
};

// The published models look back further, and a fit refuses less.
inline constexpr Step kFirstPublishedFit = 50;

struct BayesSettings {
  uint64_t seed = 1;
  Step warmup = 20;
  bool published = false;
  bool prior = true;                      // with the built-in model
  Emission emission = Emission::kShared;  // of what is fitted on the way
  Imputing imputing = Imputing::kTruncated;
  std::shared_ptr<const ModelWeights> model;  // null: none to start with
  std::unique_ptr<Fitter> fitter;             // null: no model is fitted
  uint32_t samples = 0;                       // 0: learned_samples()

  Step first_fit = 30;        // steps seen
  double refit_growth = 1.5;  // fitted again when so many times as many steps were seen
  uint32_t first_iterations = 300;
  uint32_t refit_iterations = 150;
};

class BayesForecaster : public Forecaster {
 public:
  explicit BayesForecaster(BayesSettings settings);

  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;
  bool ready(std::span<const WorkerId> alive) const override;
  void forecast(Step step, std::span<const WorkerId> alive, Forecast& out) override;
  bool by_worker() const override { return settings_.emission != Emission::kSorted; }
  std::string basis() const override;
  bool model_stale() const override { return model_trouble_.empty() && stale_; }

 private:
  // The built-in model, the one fitted to this cluster, and two simple ones.
  enum Rival : size_t { kPrior, kModel, kEcdf, kEwma, kRivals };

  void score(const StepTimes& times);
  void remember(const StepTimes& times);
  void swap_in(Rival rival, std::shared_ptr<const ModelWeights> weights);
  void mind_the_fit(Step now);
  void begin_fit(Step now);
  bool serves(size_t rival, std::span<const WorkerId> alive) const;
  void forecast_by(size_t rival, Step step, std::span<const WorkerId> alive, uint32_t samples,
                   Forecast& out);
  // For each worker that is judged in a step.
  void choose_judged(Step step, std::span<const WorkerId> alive);

  BayesSettings settings_;
  EcdfForecaster ecdf_;
  EwmaForecaster ewma_;
  std::array<std::unique_ptr<LearnedModel>, 2> models_;  // by rival; null: there is none
  History history_;
  Rivals rivals_;
  std::array<CommonShift, kRivals> shifts_;
  uint64_t seen_ = 0;
  double cut_short_ = 0.0;  // fading, as all_
  double all_ = 0.0;

  // The forecast of the step that comes next, for imputing and judging.
  std::vector<WorkerId> alive_;
  Forecast expected_;
  std::vector<WorkerId> judged_;
  std::array<Forecast, kRivals> judged_samples_;
  bool judging_ = false;
  std::array<uint32_t, kRivals> rows_{};  // of the last forecast, by rival

  uint64_t fitted_on_ = 0;  // steps seen when the last fit began
  bool stale_ = false;
  std::string fit_trouble_;     // why there is no model, if a fit has failed
  std::string model_trouble_;   // why it cannot serve those alive
  std::vector<float> fastest_;  // run-time by worker; 0: none known
  float fastest_of_all_ = 0.0F;
  std::vector<float> floors_;
  Forecast part_;
  ArrivalScore arrivals_;
  std::vector<float> column_;
  std::vector<PastTime> row_;
};

}  // namespace drover
