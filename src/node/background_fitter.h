// BackgroundFitter: fits on a thread of its own beside a live run, with the lowest priority and a
// bounded share of one core, so that training does not notice.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/time.h"
#include "forecast/learned/fitting.h"

namespace drover {

// How long a fit pauses after it computed for `computed` within `passed`, so that it takes no more
// than `share` of a core: what is missing to computed / share. REQUIRES: 0 < share <= 1.
Duration pause_for_share(Duration computed, Duration passed, double share);

// All calls come from one thread.
class BackgroundFitter : public Fitter {
 public:
  // REQUIRES: 0 < share <= 1. The fit is called on the other thread alone.
  explicit BackgroundFitter(FitFunction fit, double share = 0.25);
  // A fit under way is stopped, which takes one iteration.
  ~BackgroundFitter() override;

  void begin(Step now, FitRequest request) override;
  bool busy() const override { return busy_; }
  std::optional<Result<FitOutcome>> poll(Step now) override;

 private:
  void work();
  // Waits until the fit may go on; false: it is to stop.
  bool pause(Duration pause);

  const FitFunction fit_;
  const double share_;
  bool busy_ = false;

  // Asked every step; no lock, which a thread of the lowest priority might hold for long on a busy
  // machine. `outcome_` is the other thread's until `answered_`, and ours from then on.
  std::atomic<bool> answered_ = false;
  std::optional<Result<FitOutcome>> outcome_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<FitRequest> request_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace drover
