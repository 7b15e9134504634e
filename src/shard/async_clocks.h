// AsyncClocks: the progress of each worker in an asynchronous run (policies async and ssp).
//
// A worker numbers its gradients consecutively. Its clock on a shard is the number of the first
// gradient that is not complete there. With a bound on staleness a worker may begin gradient v only
// while v is at most that bound ahead of the slowest member's clock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.h"
#include "core/membership.h"
#include "core/time.h"
#include "wire/control.h"

namespace drover {

class AsyncClocks {
 public:
  // `blocks`: the number of blocks of a complete gradient.
  AsyncClocks(uint32_t workers, size_t blocks, std::optional<uint64_t> staleness);

  // A worker has connected, for the first time or again. Its clock is unknown.
  void on_joined(WorkerId worker);
  // Sets the worker's clock if it is unknown. A worker that joins begins with the newest
  // parameters, so that it does not hold up the others.
  void set_if_unknown(WorkerId worker, Step clock);

  // Whether a worker may receive parameters to begin its gradient number `step`.
  bool may_begin(Step step) const { return !staleness_ || step <= slowest_ + *staleness_; }
  void on_served(WorkerId worker, TimePoint now);

  // A block of gradient number `step` has arrived, and was `used` or not. Returns whether the
  // gradient is now complete.
  bool on_block(WorkerId worker, Step step, bool used, TimePoint now);

  // Updates the clock of the slowest member. Returns whether it has advanced, so that more workers
  // may begin.
  bool find_slowest(const Membership& members);

  // Arrivals by worker, one for each worker with a complete used gradient since the last call. The
  // run-time is that of its last gradient, from when its parameters were sent to when its last
  // block arrived.
  std::vector<StepClosed::Arrival> take_arrivals(Step step);

 private:
  struct WorkerClock {
    std::optional<Step> clock;
    Step step = 0;  // the gradient that `blocks` and `used` count
    size_t blocks = 0;
    size_t used = 0;
    TimePoint served{};
    std::optional<Duration> arrival;  // since the last take_arrivals()
  };

  const size_t blocks_;
  const std::optional<uint64_t> staleness_;
  std::vector<WorkerClock> clocks_;  // by worker
  Step slowest_ = 0;
};

}  // namespace drover
