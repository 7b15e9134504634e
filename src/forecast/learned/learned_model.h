// LearnedModel: the forward pass of a learned model, from the steps it has seen to samples of the
// next one. No libtorch, and no memory is allocated once the number of workers has settled.
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
  // REQUIRES: the weights are whole: every tensor of tensors_of(weights.shape) with all its values.
  LearnedModel(std::shared_ptr<const ModelWeights> weights, uint64_t seed);
  ~LearnedModel();

  const ModelWeights& weights() const;

  // A step has ended. Steps come in order; workers may only become more.
  void learn(Step step, std::span<const PastTime> row);
  // A run-time that was cut short is known after all.
  void correct(Step step, WorkerId worker, float log_time);

  // Why it cannot tell about these workers, for people; empty if it can. It serves a few more or
  // less than it was fitted on.
  std::string trouble_with(std::span<const WorkerId> alive) const;

  // Samples of the run-times of `alive` in `step`; of the sorted model, order statistics (sorted is
  // set). REQUIRES: at least one step was learned, alive is not empty, trouble_with(alive) is
  // empty.
  void forecast(Step step, std::span<const WorkerId> alive, uint32_t samples, Forecast& out);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// A model that has looked back on the newest steps of a history, as many as it remembers.
std::unique_ptr<LearnedModel> model_after(std::shared_ptr<const ModelWeights> weights,
                                          uint64_t seed, const History& history);

}  // namespace drover
