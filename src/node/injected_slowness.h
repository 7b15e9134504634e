// InjectedSlowness: how long a worker has to wait so that it is as slow as rules say (`--slow`).
// Without I/O: the caller waits.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/slow_rule.h"
#include "core/slowness.h"

namespace drover {

class InjectedSlowness {
 public:
  InjectedSlowness(std::vector<SlowRule> rules, uint64_t seed, WorkerId worker)
      : rules_(std::move(rules)), seed_(seed), worker_(worker) {}

  // A step begins: returns how long to wait before computing.
  Duration begin(Step step) {
    if (rules_.empty()) return Duration::zero();
    now_ = slowness_of(rules_, seed_, step, worker_);
    return now_.delay;
  }

  // Whether computing takes longer in this step. If not, resume() and stretch() are not needed.
  bool stretches() const { return now_.factor > 1.0; }
  // Computing began, or continues, at `now`.
  void resume(TimePoint now) { since_ = now; }
  // How long to wait so that the computing since resume() takes `factor` times as long.
  Duration stretch(TimePoint now) const {
    return from_seconds(seconds(now - since_) * (now_.factor - 1.0));
  }

 private:
  const std::vector<SlowRule> rules_;
  const uint64_t seed_;
  const WorkerId worker_;
  Slowness now_;
  TimePoint since_{};
};

}  // namespace drover
