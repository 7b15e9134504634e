// PullTask: a training task whose every update can be predicted. Each gradient pulls all parameters
// towards a number that depends on the batch; all values of a tensor are equal.
#pragma once

#include "worker/task.h"

namespace drover {

class PullTask : public Task {
 public:
  // With `averages` one more tensor is averaged instead of trained, as running statistics are.
  explicit PullTask(bool averages = false);

  // The number that the gradient of this batch pulls to, from -1 to 1.
  static double target(const Batch& batch);

  const Layout& layout() const override { return layout_; }
  void initial_parameters(std::span<float> parameters) override;
  GradientReport gradient(std::span<const float> parameters, const Batch& batch,
                          std::span<float> gradient, GradientListener& listener) override;
  Evaluation evaluate(std::span<const float> parameters) override;
  Status save(std::span<const float>, const std::string&) override;
  std::vector<std::pair<std::string, std::string>> describe() const override;

 private:
  const Layout layout_;
};

}  // namespace drover
