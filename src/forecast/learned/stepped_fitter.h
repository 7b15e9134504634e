// SteppedFitter: fits in begin() and returns the result a fixed number of steps later, so that a
// replay or a simulation is reproducible and independent of the duration of a fit.
#pragma once

#include "forecast/learned/fitting.h"

namespace drover {

class SteppedFitter : public Fitter {
 public:
  // `keep_going` is called in each iteration (empty: always true). If it returns false, the fit
  // ends with the best weights so far.
  SteppedFitter(FitFunction fit, Step delay, std::function<bool()> keep_going = {});

  void begin(Step now, FitRequest request) override;
  bool busy() const override { return outcome_.has_value(); }
  std::optional<Result<FitOutcome>> poll(Step now) override;

 private:
  const FitFunction fit_;
  const Step delay_;
  const std::function<bool()> keep_going_;
  Step begun_ = 0;
  std::optional<Result<FitOutcome>> outcome_;
};

}  // namespace drover
