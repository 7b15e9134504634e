#include "forecast/learned/stepped_fitter.h"

#include "core/check.h"

namespace drover {

SteppedFitter::SteppedFitter(FitFunction fit, Step delay, std::function<bool()> go_on)
    : fit_(std::move(fit)), delay_(delay), go_on_(std::move(go_on)) {}

void SteppedFitter::begin(Step now, FitRequest request) {
  DROVER_CHECK(!busy());
  begun_ = now;
  outcome_ = fit_(request, [this](uint32_t, const FitPoint*) { return !go_on_ || go_on_(); });
}

std::optional<Result<FitOutcome>> SteppedFitter::poll(Step now) {
  // A step before the fit began is none that it could be for.
  if (!outcome_ || now < begun_ || now - begun_ < delay_) return std::nullopt;
  return std::exchange(outcome_, std::nullopt);
}

}  // namespace drover
