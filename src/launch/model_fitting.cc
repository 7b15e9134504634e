#include "launch/model_fitting.h"

#include "fit/fit_module.h"
#include "forecast/learned/stepped_fitter.h"
#include "node/background_fitter.h"
#include "node/interrupts.h"

namespace drover {
namespace {

// How many steps a fit takes: about that of a background fit in a run with steps of a second.
constexpr Step kFitSteps = 20;

}  // namespace

FitFunction lazy_fit_function() {
  return [loaded = std::optional<Result<FitFunction>>()](
             const FitRequest& request, const FitListener& listener) mutable -> Result<FitOutcome> {
    if (!loaded) loaded = load_fit_function();
    if (!*loaded) return loaded->error();
    return loaded->value()(request, listener);
  };
}

FitterMaker background_fitters() {
  return [] { return std::make_unique<BackgroundFitter>(lazy_fit_function()); };
}

FitterMaker stepped_fitters() {
  return [] {
    return std::make_unique<SteppedFitter>(lazy_fit_function(), kFitSteps,
                                           [] { return !interrupted(); });
  };
}

}  // namespace drover
