#include "policies/fitters.h"

#include <memory>
#include <optional>

#include "fit/fit_module.h"
#include "forecast/learned/stepped_fitter.h"

namespace drover {
namespace {

constexpr Step kFitSteps = 20;  // as in drover replay

}  // namespace

FitterMaker bench_fitters() {
  return [] {
    FitFunction fit = [loaded = std::optional<Result<FitFunction>>()](
                          const FitRequest& request,
                          const FitListener& listener) mutable -> Result<FitOutcome> {
      if (!loaded) loaded = load_fit_function();
      if (!*loaded) return loaded->error();
      return loaded->value()(request, listener);
    };
    return std::make_unique<SteppedFitter>(std::move(fit), kFitSteps, [] { return true; });
  };
}

}  // namespace drover
