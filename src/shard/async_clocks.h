// AsyncClocks: how far each worker is where workers do not wait for a step together (async, ssp).
//
// A worker numbers its gradients by itself, one after the other; its clock on a shard is the number
// of the first that is not whole there yet. With a bound on staleness it may begin gradient v only
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
  // `blocks`: a gradient is whole when so many of its blocks have come.
  AsyncClocks(uint32_t workers, size_t blocks, std::optional<uint64_t> staleness);

  // A worker has connected, for the first time or again: nothing is known of it.
  void on_joined(WorkerId worker);
  // Sets its clock, unless it is known: the worker begins with the newest parameters, and must not
  // hold up the others.
  void place(WorkerId worker, Step clock);

  // Whether `worker` may have parameters to begin its gradient number `step` with.
  bool may_begin(Step step) const { return !staleness_ || step <= slowest_ + *staleness_; }
  void on_served(WorkerId worker, TimePoint now);

  // A block of gradient number `step` has come, and was `used` or not. Returns whether the gradient
  // is whole now.
  bool on_block(WorkerId worker, Step step, bool used, TimePoint now);

  // Looks again for the slowest of the members. Returns whether a worker may begin that might not
  // before.
  bool find_slowest(const Membership& members);

  // For each worker of which a whole gradient was used since the last call, by worker: how long
  // its last one took, from its parameters being sent to its last block being here.
  std::vector<StepClosed::Arrival> take_arrivals(Step step);

 private:
  struct Runner {
    std::optional<Step> clock;
    Step step = 0;  // the gradient of which `blocks` have come
    size_t blocks = 0;
    size_t used = 0;
    TimePoint served{};
    std::optional<Duration> arrival;  // since the last take_arrivals()
  };

  const size_t blocks_;
  const std::optional<uint64_t> staleness_;
  std::vector<Runner> runners_;  // by worker
  Step slowest_ = 0;
};

}  // namespace drover
