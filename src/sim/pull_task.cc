#include "sim/pull_task.h"

#include <algorithm>

#include "core/random_draw.h"

namespace drover {

namespace {

// One tensor is small enough to be sent with its offer, one must be granted, and one is split into
// blocks.
std::vector<TensorSpec> tensors(bool averages) {
  std::vector<TensorSpec> all = {{"small", 40, TensorKind::kTrained},
                                 {"large", 5'000, TensorKind::kTrained},
                                 {"middle", 700, TensorKind::kTrained}};
  if (!averages) return all;
  all[2].rate = 0.5;
  all.push_back({"statistics", 60, TensorKind::kAveraged});
  return all;
}

}  // namespace

PullTask::PullTask(bool averages) : layout_(tensors(averages)) {}

double PullTask::target(const Batch& batch) {
  return 2.0 * unit_interval(draw({batch.first, batch.count})) - 1.0;
}

void PullTask::initial_parameters(std::span<float> parameters) {
  std::fill(parameters.begin(), parameters.end(), 0.0f);
}

GradientReport PullTask::gradient(std::span<const float> parameters, const Batch& batch,
                                  std::span<float> gradient, GradientListener& listener) {
  if (!listener.wanted()) return {};
  const auto goal = static_cast<float>(target(batch));
  for (size_t i = 0; i < parameters.size(); ++i) gradient[i] = parameters[i] - goal;
  for (auto tensor = static_cast<uint32_t>(layout_.tensors().size()); tensor-- > 0;) {
    if (!listener.tensor_ready(tensor)) return {};
  }
  const double off = static_cast<double>(parameters[0] - goal);
  return {.finished = true,
          .samples = batch.count,
          .loss = 0.5 * off * off,
          .correct = 0,
          .predictions = batch.count};
}

Evaluation PullTask::evaluate(std::span<const float> parameters) {
  const auto value = static_cast<double>(parameters[0]);
  return {.loss = 0.5 * value * value, .accuracy = 0.0, .samples = 1};
}

Status PullTask::save(std::span<const float>, const std::string&) {
  return invalid_input("this task has no model to save");
}

std::vector<std::pair<std::string, std::string>> PullTask::describe() const {
  return {{"model", "a single number"}};
}

}  // namespace drover
