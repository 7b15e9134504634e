// LearnedModel: the forward pass of a learned model, from past steps to samples of the next one. It
// does not use libtorch, and does not allocate while the number of workers stays the same.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/result.h"
#include "forecast/forecast.h"
#include "forecast/learned/history.h"
#include "forecast/learned/model_weights.h"

namespace drover {

class LearnedModel {
 public:
  // REQUIRES: the weights are complete: each tensor of tensors_of(weights.shape), with all values.
  LearnedModel(std::shared_ptr<const ModelWeights> weights, uint64_t seed);
  ~LearnedModel();

  const ModelWeights& weights() const;

  // Reports a step that has ended. Steps come in order; the number of workers may only grow.
  void learn(Step step, std::span<const PastTime> row);
  // Reports the true log run-time of a censored one, which came late.
  void correct(Step step, WorkerId worker, float log_time);

  // Why the model cannot forecast these workers, for people; empty if it can. A model with a fixed
  // number of workers tolerates a small difference.
  std::string incompatibility(std::span<const WorkerId> alive) const;

  // Samples of the run-times of `alive` in `step`; with Emission::kSorted, order statistics.
  // REQUIRES: at least one step was learned; alive is not empty; incompatibility(alive) is empty.
  void forecast(Step step, std::span<const WorkerId> alive, uint32_t samples, Forecast& out);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// A model that has learned the newest steps of a history, as many as affect its forecasts.
std::unique_ptr<LearnedModel> model_after(std::shared_ptr<const ModelWeights> weights,
                                          uint64_t seed, const History& history);

}  // namespace drover
