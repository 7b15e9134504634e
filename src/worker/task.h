// Task: a model with its data, behind an interface of spans of floats.
//
// Workers compute gradients with it, and the evaluator computes loss and accuracy. No other code
// uses a model, so the rest of Drover needs no machine-learning library.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/layout.h"
#include "core/result.h"

namespace drover {

// The samples of one worker in one step: `count` consecutive positions of the run's stream of
// samples (core/random_draw.h, sample_at). The samples at these positions depend on the task's seed
// only, so N workers with batches of B / N see the same samples as one worker with a batch of B.
// If the data is partitioned, they are positions in the stream of this part.
struct Batch {
  uint64_t first = 0;
  uint32_t count = 0;
  uint32_t part = 0;
  uint32_t parts = 1;
};

// Receives progress of a gradient while a task computes it.
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  // The values of this tensor are final. Returns false if the gradient is no longer wanted.
  virtual bool tensor_ready(uint32_t tensor) = 0;
  // Whether the gradient is still wanted. Called wherever the computation can be aborted.
  virtual bool wanted() = 0;
};

struct GradientReport {
  bool finished = false;  // false: aborted by the listener; the other fields have no meaning
  uint32_t samples = 0;
  double loss = 0.0;         // mean over the samples
  uint32_t correct = 0;      // number of correct predictions
  uint32_t predictions = 0;  // number of predictions: samples or, for text, characters
};

// Thrown by a task whose library could not allocate memory.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Evaluation {
  double loss = 0.0;
  double accuracy = 0.0;  // share of correct predictions on the test set
  uint64_t samples = 0;
};

class Task {
 public:
  virtual ~Task() = default;

  virtual const Layout& layout() const = 0;

  // Writes the initial parameters, which depend on the task's seed only.
  // REQUIRES (here and below): spans have layout().buffer_size() floats.
  virtual void initial_parameters(std::span<float> parameters) = 0;

  // Writes the gradient of the mean loss over `batch`, at `parameters`, into `gradient`.
  // For tensors of kind kAveraged it writes the tensor's new value instead.
  //
  // Calls listener.tensor_ready(index) once per tensor as soon as its values are final, usually
  // last layer first, while earlier layers are still being differentiated, and listener.wanted()
  // between layers. If either returns false, the task stops as soon as possible and reports
  // finished = false. Throws OutOfMemory if memory cannot be allocated.
  virtual GradientReport gradient(std::span<const float> parameters, const Batch& batch,
                                  std::span<float> gradient, GradientListener& listener) = 0;

  // Loss and accuracy on the whole test set.
  virtual Evaluation evaluate(std::span<const float> parameters) = 0;

  // Writes the parameters to a file that PyTorch reads with torch.load: a dict of named tensors.
  virtual Status save(std::span<const float> parameters, const std::string& path) = 0;

  // Properties for people, e.g. {"model", "LeNet, 61,706 parameters"}.
  virtual std::vector<std::pair<std::string, std::string>> describe() const = 0;
};

}  // namespace drover
