// WarmUp: the first steps of a run, in which a policy that learns waits for all workers.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "policy/policy.h"
#include "policy/wording.h"

namespace drover {

class WarmUp {
 public:
  // At least one step, since a policy needs data.
  explicit WarmUp(Step steps) : steps_(std::max<Step>(steps, 1)) {}

  void learn() { ++seen_; }
  bool over() const { return seen_ >= steps_; }
  Step seen() const { return seen_; }

  Choice choice(const Situation& situation) const {
    const auto alive = static_cast<uint32_t>(situation.alive.size());
    return {.cutoff = alive,
            .reason = fmt::format("warm-up: wait for {}; {} of {} steps seen",
                                  worker_count_text(alive, alive), seen_, steps_)};
  }

 private:
  const Step steps_;
  Step seen_ = 0;
};

}  // namespace drover
