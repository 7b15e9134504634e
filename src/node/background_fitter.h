// BackgroundFitter: fits models on a background thread during a live run, with the lowest priority
// and a bounded share of one core, so that it does not slow down training.
#pragma once

#include <atomic>
#include <thread>

#include "core/mutex.h"
#include "core/time.h"
#include "forecast/learned/fitting.h"

namespace drover {

// How long a fit pauses after it used `computed` of CPU time within `passed`, so that it takes no
// more than `share` of a core: computed / share - passed, at least 0. REQUIRES: 0 < share <= 1.
Duration pause_for_share(Duration computed, Duration passed, double share);

// All calls come from one thread.
class BackgroundFitter : public Fitter {
 public:
  // `fit` is called on the background thread only. REQUIRES: 0 < share <= 1.
  explicit BackgroundFitter(FitFunction fit, double share = 0.25);
  // Stops a fit under way, after its current iteration.
  ~BackgroundFitter() override;

  void begin(Step now, FitRequest request) override;
  bool busy() const override { return busy_; }
  std::optional<Result<FitOutcome>> poll(Step now) override;

 private:
  void work();
  // Waits for `pause`. False: the fit is to stop.
  bool pause(Duration pause);

  const FitFunction fit_;
  const double share_;
  bool busy_ = false;

  // poll() reads it at every step, without a lock: on a busy machine a thread of the lowest
  // priority might hold one for long. The background thread owns `outcome_` until it sets
  // `answered_`.
  std::atomic<bool> answered_ = false;
  std::optional<Result<FitOutcome>> outcome_;

  Mutex mutex_;
  ConditionVariable changed_;
  std::optional<FitRequest> request_ DROVER_GUARDED_BY(mutex_);
  bool stop_ DROVER_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace drover
