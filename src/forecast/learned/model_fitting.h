// ModelFitting: starts the fits of a model during a run, and returns the fitted models.
//
// The first fit begins after FittingSettings::first_fit steps. Another one begins when the number
// of steps has grown by FittingSettings::refit_growth, or soon after the model has become stale.
// Decisions never wait for a fit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "forecast/learned/fitting.h"
#include "forecast/learned/history.h"
#include "forecast/learned/model_weights.h"

namespace drover {

// The published models have a longer window, and their fit needs this number of steps.
inline constexpr Step kFirstPublishedFit = 50;

struct FittingSettings {
  uint64_t seed = 1;
  Emission emission = Emission::kShared;  // others: first_fit is at least kFirstPublishedFit
  Step first_fit = 30;                    // steps seen
  double refit_growth = 1.5;              // growth of the number of steps until the next fit
  uint32_t first_iterations = 300;
  uint32_t refit_iterations = 150;
  bool believe_imputed = false;  // treat imputed run-times as known
  double foresight = FitSettings{}.foresight;
};

class ModelFitting {
 public:
  // Minimum number of steps between fits if the model is stale; twice as many otherwise.
  static constexpr uint64_t kStepsBetweenFits = 15;

  // Without a `fitter` (null), no model is fitted.
  ModelFitting(const FittingSettings& settings, std::unique_ptr<Fitter> fitter);

  // Returns the model of a fit that has finished since the last call; null if there is none.
  std::shared_ptr<const ModelWeights> poll(Step now);

  // Begins a fit if one is due after `seen` steps in total, of which `history` has the newest.
  // `model` is the current model (null: none), and `stale` whether it is disabled.
  void begin_if_due(Step now, uint64_t seen, const History& history, const ModelWeights* model,
                    bool stale);

  // For the end of a forecast's basis: "; no model yet", or why the last fit failed; else "".
  std::string remark(bool has_model) const;

 private:
  FitRequest request(const History& history, const ModelWeights* model) const;

  const FittingSettings settings_;
  const std::unique_ptr<Fitter> fitter_;
  uint64_t fitted_on_ = 0;  // steps seen when the last fit began; 0: none yet
  std::string trouble_;     // why the last fit failed
};

}  // namespace drover
