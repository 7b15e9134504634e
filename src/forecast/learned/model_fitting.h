// ModelFitting: decides when a model is fitted and with what, and hands over what comes of it.
//
// The first fit begins after FittingSettings::first_fit steps. Another begins when so many times as
// many steps were seen, or soon after the model has gone stale. Deciding never waits for a fit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "forecast/learned/fitting.h"
#include "forecast/learned/history.h"
#include "forecast/learned/model_weights.h"

namespace drover {

// The published models look back further, and a fit refuses less.
inline constexpr Step kFirstPublishedFit = 50;

struct FittingSettings {
  uint64_t seed = 1;
  Emission emission = Emission::kShared;  // others: first_fit is at least kFirstPublishedFit
  Step first_fit = 30;                    // steps seen
  double refit_growth = 1.5;              // fitted again when so many times as many steps were seen
  uint32_t first_iterations = 300;
  uint32_t refit_iterations = 150;
  bool believe_imputed = false;  // run-times that were imputed count as seen
  double foresight = FitSettings{}.foresight;
};

class ModelFitting {
 public:
  // Steps that a stale model is given before it is fitted again; twice as many otherwise.
  static constexpr uint64_t kStepsBetweenFits = 15;

  // `fitter` null: no model is fitted.
  ModelFitting(const FittingSettings& settings, std::unique_ptr<Fitter> fitter);

  // The model that a fit has made since the last call; null if there is none.
  std::shared_ptr<const ModelWeights> poll(Step now);

  // Begins a fit if one is due after `seen` steps in all, of which `history` has the newest.
  // `model` is in use now, null: none; `stale` says that it has been disabled.
  void begin_if_due(Step now, uint64_t seen, const History& history, const ModelWeights* model,
                    bool stale);

  // For the end of a forecast's basis: "; no model yet", or why the last fit failed; else "".
  std::string remark(bool has_model) const;

 private:
  FitRequest request(const History& history, const ModelWeights* model) const;

  const FittingSettings settings_;
  const std::unique_ptr<Fitter> fitter_;
  uint64_t fitted_on_ = 0;  // steps seen when the last fit began; 0: none has
  std::string trouble_;     // why the last fit failed
};

}  // namespace drover
