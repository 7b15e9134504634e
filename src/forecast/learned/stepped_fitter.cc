#include "forecast/learned/stepped_fitter.h"

#include "core/check.h"

namespace drover {

SteppedFitter::SteppedFitter(FitFunction fit, Step delay, std::function<bool()> keep_going)
    : fit_(std::move(fit)), delay_(delay), keep_going_(std::move(keep_going)) {}

void SteppedFitter::begin(Step now, FitRequest request) {
  DROVER_CHECK(!busy());
  begun_ = now;
  outcome_ =
      fit_(request, [this](uint32_t, const FitPoint*) { return !keep_going_ || keep_going_(); });
}

std::optional<Result<FitOutcome>> SteppedFitter::poll(Step now) {
  // A poll for a step before the fit began returns nothing.
  if (!outcome_ || now < begun_ || now - begun_ < delay_) return std::nullopt;
  return std::exchange(outcome_, std::nullopt);
}

}  // namespace drover
