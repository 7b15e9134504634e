// Task: something to learn. Data and a model, behind spans of floats.
//
// A worker asks a task for gradients, an evaluator for accuracy. Nobody else touches a model, so
// the rest of the system needs no machine-learning library.
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
// samples (core/random_draw.h, sample_at). Which samples stand there follows from the task's seed
// alone, so N workers with batches of B / N see together what one worker with a batch of B sees.
// Where the data is cut into parts, they are positions of the stream of this part.
struct Batch {
  uint64_t first = 0;
  uint32_t count = 0;
  uint32_t part = 0;
  uint32_t parts = 1;
};

// Whom a task tells of a gradient while it computes it.
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  // The values of this tensor are final. False: the gradient is no longer wanted.
  virtual bool tensor_ready(uint32_t tensor) = 0;
  // Whether the gradient is still wanted; asked wherever the work could be left off.
  virtual bool wanted() = 0;
};

struct GradientReport {
  bool finished = false;  // false: abandoned because the listener said so; the rest says nothing
  uint32_t samples = 0;
  double loss = 0.0;         // mean over the samples
  uint32_t correct = 0;      // samples (or, for text, characters) predicted right ...
  uint32_t predictions = 0;  // ... out of so many
};

// Thrown by a task whose library could not allocate memory.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Evaluation {
  double loss = 0.0;
  double accuracy = 0.0;  // share of right predictions on the test set
  uint64_t samples = 0;
};

class Task {
 public:
  virtual ~Task() = default;

  virtual const Layout& layout() const = 0;

  // The values training starts from, a function of the task's seed alone.
  // REQUIRES (here and below): spans have layout().buffer_size() floats.
  virtual void initial_parameters(std::span<float> parameters) = 0;

  // Writes the gradient of the mean loss over `batch`, at `parameters`, into `gradient`.
  // For tensors of kind kAveraged it writes the tensor's new value instead.
  //
  // Calls listener.tensor_ready(index) once per tensor as soon as its values are final, usually
  // last layer first, while earlier layers are still being differentiated, and listener.wanted()
  // between layers. If either returns false the gradient is no longer wanted: the task stops as
  // soon as it can and reports finished = false. Throws OutOfMemory if memory is short.
  virtual GradientReport gradient(std::span<const float> parameters, const Batch& batch,
                                  std::span<float> gradient, GradientListener& listener) = 0;

  // Loss and accuracy on the whole test set.
  virtual Evaluation evaluate(std::span<const float> parameters) = 0;

  // Writes the parameters for others to use (PyTorch reads the file with torch.load: a dict of
  // named tensors).
  virtual Status save(std::span<const float> parameters, const std::string& path) = 0;

  // What a person would like to know, e.g. {"model", "LeNet, 61,706 parameters"}.
  virtual std::vector<std::pair<std::string, std::string>> describe() const = 0;
};

}  // namespace drover
