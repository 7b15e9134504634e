// SteppedFitter: fits within begin() and hands the answer out some steps later, so that a replay or
// a simulation repeats exactly, however long a fit takes on this machine.
#pragma once

#include "forecast/learned/fitting.h"

namespace drover {

class SteppedFitter : public Fitter {
 public:
  // `go_on` is asked every iteration (empty: always); false ends the fit with the best so far.
  SteppedFitter(FitFunction fit, Step delay, std::function<bool()> go_on = {});

  void begin(Step now, FitRequest request) override;
  bool busy() const override { return outcome_.has_value(); }
  std::optional<Result<FitOutcome>> poll(Step now) override;

 private:
  const FitFunction fit_;
  const Step delay_;
  const std::function<bool()> go_on_;
  Step begun_ = 0;
  std::optional<Result<FitOutcome>> outcome_;
};

}  // namespace drover
