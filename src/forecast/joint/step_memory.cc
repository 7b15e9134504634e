#include "forecast/joint/step_memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace drover {
namespace {

constexpr size_t kCells = 400'000;
constexpr size_t kFewest = 64;
constexpr size_t kMost = 600;
constexpr double kHalfLife = 40.0;
constexpr double kEven = 0.3;

}  // namespace

void StepMemory::add(Row row) {
  const size_t space = std::clamp(kCells / std::max<size_t>(1, row.times.size()), kFewest, kMost);
  rows_.push_back(std::move(row));
  while (rows_.size() > space) {
    rows_.pop_front();
    if (since_ > 0) --since_;
  }
}

StepMemory::Row* StepMemory::find(Step step) {
  const auto found =
      std::lower_bound(rows_.begin(), rows_.end(), step,
                       [](const Row& row, Step wanted) { return row.step < wanted; });
  return found != rows_.end() && found->step == step ? &*found : nullptr;
}

std::span<const double> StepMemory::weights() {
  weights_.resize(rows_.size());
  double sum = 0.0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    weights_[i] =
        rows_[i].first
            ? 0.0
            : rows_[i].weight * std::exp2(-static_cast<double>(rows_.size() - 1 - i) / kHalfLife);
    sum += weights_[i];
  }
  double even = 0.0;
  for (size_t i = since_; i < rows_.size(); ++i) even += rows_[i].first ? 0.0 : rows_[i].weight;
  if (sum == 0.0) return weights_;
  const double share = even > 0.0 ? kEven : 0.0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    weights_[i] *= (1.0 - share) / sum;
    if (i >= since_ && !rows_[i].first) weights_[i] += share * rows_[i].weight / even;
  }
  return weights_;
}

}  // namespace drover
