// TrainingSession: the interface between a training loop and the run. training_loop(): the loop of
// built-in tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/ids.h"
#include "worker/task.h"

namespace drover {

class TrainingSession {
 public:
  virtual ~TrainingSession() = default;

  // Waits for the parameters of the next step. nullopt: the run is over.
  virtual std::optional<Step> next_step() = 0;

  // This worker's samples of that step.
  virtual Batch batch() const = 0;

  // Flat buffers (core/layout.h), valid and unchanged until the next call of next_step().
  virtual std::span<const float> parameters() const = 0;
  virtual std::span<float> gradient() = 0;

  // The values of this tensor are final, and may be pushed while others are still being computed.
  // Returns false if the step has closed: the rest of the gradient is not wanted.
  virtual bool tensor_ready(uint32_t tensor, uint32_t samples) = 0;
  // Whether the step is still open, as far as this process knows.
  virtual bool wanted() = 0;

  // The gradient is complete or aborted.
  virtual void finish_step(const GradientReport& report) = 0;
};

// Computes gradients until the run is over.
void training_loop(TrainingSession& session, Task& task);

}  // namespace drover
