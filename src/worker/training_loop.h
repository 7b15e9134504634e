// TrainingSession: the API a training loop calls. training_loop(): the loop itself, for built-in
// tasks.
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

  // Waits for the parameters of the next step. Nothing means that the run is over.
  virtual std::optional<Step> next_step() = 0;

  // This worker's samples of that step.
  virtual Batch batch() const = 0;

  // Flat buffers (core/layout.h); valid and unchanged from next_step() to the next call of it.
  virtual std::span<const float> parameters() const = 0;
  virtual std::span<float> gradient() = 0;

  // This tensor of the gradient is final and may be pushed while others are still being computed.
  // Returns false if the step has closed meanwhile: the rest is not wanted.
  virtual bool tensor_ready(uint32_t tensor, uint32_t samples) = 0;
  // Whether the step is still open, as far as is known here.
  virtual bool wanted() = 0;

  // The gradient is complete, or was abandoned.
  virtual void finish_step(const GradientReport& report) = 0;
};

// Computes gradients until the run is over.
void training_loop(TrainingSession& session, Task& task);

}  // namespace drover
