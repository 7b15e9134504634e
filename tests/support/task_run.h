// For tests that are the launcher themselves: a task that does what another does, but for what the
// test wants otherwise, and somebody who shows nothing.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "node/launcher.h"
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

class SilentView : public RunView {
 public:
  Status on_peer(const PeerRecord&) override { return done(); }
  Status on_decision(const DecisionRecord&) override { return done(); }
  Status on_step(const StepRecord&, const std::vector<ArrivalRecord>&) override { return done(); }
  Status on_late_arrival(const ArrivalRecord&) override { return done(); }
  Status on_abandoned(const AbandonRecord&) override { return done(); }
  Status on_evaluation(const EvaluationRecord&) override { return done(); }
  Status on_event(const EventRecord&) override { return done(); }
  Status on_end(const RunEnd&) override { return done(); }
  void tick() override {}
};

}  // namespace drover::testing_support
