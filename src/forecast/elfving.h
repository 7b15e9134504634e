// Elfving forecasters: run-times are independent draws from one normal distribution, and the
// forecast is the expectation of their order statistics.
//
// The forecast is a single sorted row: the expected run-time of the first arrival, the second, and
// so on. It does not distinguish workers.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "forecast/censored_normal.h"
#include "forecast/forecaster.h"

namespace drover {

struct ElfvingSettings {
  Step warmup = 20;  // steps to see before the first forecast
};

struct ElfvingOnlineSettings {
  Step warmup = 20;
  Step window = 20;  // steps that the fit uses
};

class ElfvingForecaster : public Forecaster {
 public:
  // Fitted once, to the first steps, as in Teng & Wood (2018).
  explicit ElfvingForecaster(const ElfvingSettings& settings);
  // Fitted again after each step, with the likelihood of censored run-times.
  explicit ElfvingForecaster(const ElfvingOnlineSettings& settings);

  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;
  bool ready(std::span<const WorkerId> alive) const override;
  void forecast(Step step, std::span<const WorkerId> alive, Forecast& out) override;
  bool by_worker() const override { return false; }
  std::string basis() const override;

 private:
  struct Record {
    Step step = 0;
    std::vector<WorkerId> workers;  // ascending
    std::vector<Measured> times;    // in the order of `workers`
  };

  void fit();

  const Step warmup_;
  const Step window_;
  const bool online_;
  Step learned_ = 0;              // number of steps
  std::deque<Record> records_;    // the last `window_` steps
  std::vector<Measured> pooled_;  // scratch
  bool stale_ = false;            // a late run-time changed a record since the last fit
  NormalFit fit_;
  bool fitted_ = false;
  double fastest_ = 0.0;  // smallest run-time in the fit
  size_t cut_short_ = 0;  // censored run-times in the fit
  size_t fitted_on_ = 0;  // all run-times in the fit
};

}  // namespace drover
