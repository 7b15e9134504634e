// The loop connects a session with a task until the run is over.
#include "worker/training_loop.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace drover {
namespace {

class TwoSteps : public TrainingSession {
 public:
  std::optional<Step> next_step() override {
    if (reports.size() == 2) return std::nullopt;
    return reports.size();
  }
  Batch batch() const override { return {.first = 100 * reports.size(), .count = 8}; }
  std::span<const float> parameters() const override { return parameters_; }
  std::span<float> gradient() override { return gradient_; }
  bool tensor_ready(uint32_t tensor, uint32_t samples) override {
    ready.emplace_back(tensor, samples);
    return reports.empty();
  }
  bool wanted() override { return !reports.empty(); }
  void finish_step(const GradientReport& report) override { reports.push_back(report); }

  std::vector<std::pair<uint32_t, uint32_t>> ready;  // tensors and samples
  std::vector<GradientReport> reports;

 private:
  std::array<float, 2> parameters_{3.0f, 4.0f};
  std::array<float, 2> gradient_{};
};

class Doubling : public Task {
 public:
  const Layout& layout() const override { return layout_; }
  void initial_parameters(std::span<float>) override {}
  GradientReport gradient(std::span<const float> parameters, const Batch& batch,
                          std::span<float> gradient, GradientListener& listener) override {
    gradient[0] = 2 * parameters[0];
    const bool ready = listener.tensor_ready(5);
    heard.emplace_back(ready, listener.wanted());
    return {.finished = true, .samples = batch.count, .loss = static_cast<double>(batch.first)};
  }
  Evaluation evaluate(std::span<const float>) override { return {}; }
  Status save(std::span<const float>, const std::string&) override { return done(); }

  std::vector<std::pair<std::string, std::string>> describe() const override { return {}; }

  std::vector<std::pair<bool, bool>> heard;  // results of tensor_ready() and wanted()

 private:
  const Layout layout_{{{"a", 1, TensorKind::kTrained}, {"b", 1, TensorKind::kTrained}}};
};

TEST(TrainingLoop, ComputesAGradientForEveryStepOfTheSession) {
  TwoSteps session;
  Doubling task;
  training_loop(session, task);
  ASSERT_EQ(session.reports.size(), 2u);
  EXPECT_EQ(session.reports[0].loss, 0.0);
  EXPECT_EQ(session.reports[1].loss, 100.0) << "each step has its own batch";
  EXPECT_EQ(session.reports[1].samples, 8u);
  EXPECT_EQ(session.gradient()[0], 6.0f);
}

TEST(TrainingLoop, PassesTheSessionsAnswersToTheTask) {
  TwoSteps session;
  Doubling task;
  training_loop(session, task);
  EXPECT_EQ(session.ready, (std::vector<std::pair<uint32_t, uint32_t>>{{5, 8}, {5, 8}}));
  EXPECT_EQ(task.heard, (std::vector<std::pair<bool, bool>>{{true, false}, {false, true}}));
}

}  // namespace
}  // namespace drover
