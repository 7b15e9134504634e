// HeldChoice: a choice that holds for several steps, so that less is decided.
//
// For a fixed number of steps; or (0) twice as long as the one before whenever deciding again has
// come to about the same, and from the beginning when it has not. Whatever was to hold, it is
// decided again when others are alive, or when a step took half as long again, or half as long, as
// steps have of late. A step for which a choice is held is not decided again inside either.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.h"
#include "core/step_times.h"
#include "policy/policy.h"

namespace drover {

class HeldChoice {
 public:
  // 0: as long as nothing changes.
  explicit HeldChoice(uint32_t steps) : steps_(steps), length_(steps == 0 ? 1 : steps) {}

  // The choice that still holds, with the reason for that. Nothing: to be decided.
  std::optional<Choice> choice(const Situation& situation);
  // Holds what was decided from here on.
  void hold(const Situation& situation, const Choice& choice);
  void learn(const StepTimes& times);

 private:
  const uint32_t steps_;
  uint32_t length_;  // steps that the next choice holds for
  uint32_t left_ = 0;
  std::optional<Choice> held_;
  Step since_ = 0;
  std::vector<WorkerId> alive_;
  double usual_ = 0.0;  // what steps take; 0: not known
};

}  // namespace drover
