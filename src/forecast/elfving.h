// Elfving forecasters: run-times as independent draws from one normal distribution, and the
// expectation of its order statistics as the forecast.
//
// The forecast is a single, sorted row: the expected run-time of the first to arrive, the second,
// and so on. It knows no worker from another.
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
  Step window = 20;  // steps the fit rests on
};

// What both have in common: a window of steps, a fit to it, and the row.
class ElfvingForecaster : public Forecaster {
 public:
  // Fitted to the first steps and left so for ever, as in Teng & Wood (2018).
  explicit ElfvingForecaster(const ElfvingSettings& settings);
  // Fitted anew after every step, with the likelihood of run-times that were cut short.
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
    std::vector<Measured> times;    // beside them
  };

  void fit();

  const Step warmup_;
  const Step window_;
  const bool online_;
  Step learned_ = 0;              // steps so far
  std::deque<Record> records_;    // the last `window_` steps
  std::vector<Measured> pooled_;  // scratch
  bool stale_ = false;            // a late run-time has changed a record since the last fit
  NormalFit fit_;
  bool fitted_ = false;
  double fastest_ = 0.0;  // of the run-times the fit rests on
  size_t cut_short_ = 0;  // of them
  size_t fitted_on_ = 0;
};

}  // namespace drover
