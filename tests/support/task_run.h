// WrappedTask: forwards to another task, for tests that launch a run themselves and override parts
// of its task.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/task.h"

namespace drover::testing_support {

class WrappedTask : public Task {
 public:
  explicit WrappedTask(std::unique_ptr<Task> inner) : inner_(std::move(inner)) {}

  const Layout& layout() const override { return inner_->layout(); }
  void initial_parameters(std::span<float> parameters) override {
    inner_->initial_parameters(parameters);
  }
  GradientReport gradient(std::span<const float> parameters, const Batch& batch,
                          std::span<float> gradient, GradientListener& listener) override {
    return inner_->gradient(parameters, batch, gradient, listener);
  }
  Evaluation evaluate(std::span<const float> parameters) override {
    return inner_->evaluate(parameters);
  }
  Status save(std::span<const float> parameters, const std::string& path) override {
    return inner_->save(parameters, path);
  }
  std::vector<std::pair<std::string, std::string>> describe() const override {
    return inner_->describe();
  }

 private:
  std::unique_ptr<Task> inner_;
};

}  // namespace drover::testing_support
