// RateTable: the learning rate of each step, set by the schedule or by the workers' scripts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/training.h"
#include "wire/control.h"

namespace drover {

class RateTable {
 public:
  RateTable() = default;
  // `full_samples`: the samples of a step to which all workers contribute.
  RateTable(const ScheduleSettings& schedule, uint64_t full_samples)
      : schedule_(schedule), full_samples_(full_samples) {}

  // A worker sets the rate from step `rate.from` on, in place of the schedule's. If workers
  // disagree about a step, the lowest worker number wins. Rates that are superseded before step
  // `open` are dropped. An error: the step is too far ahead of `open`.
  Status on_rate(WorkerId worker, const LearningRate& rate, Step open);

  // The noise scale of the gradients, in samples; 0: unknown.
  void set_noise_scale(double noise_scale) { noise_scale_ = noise_scale; }

  // The rate of an update in `step` by gradients of `samples` samples.
  double rate_of(Step step, uint64_t samples) const;
  // The same for the tensors of a group (TensorSpec::group), with its own settings if there are
  // any; they are valid until the next on_rate().
  struct Update {
    double rate = 0.0;
    const OptimizerSettings* optimizer = nullptr;
  };
  Update update_of(Step step, uint32_t group, uint64_t samples) const;

  // The number of entries kept for later.
  size_t pending() const { return rates_.size(); }

 private:
  struct Rate {
    WorkerId worker = 0;
    double rate = 0.0;
    std::vector<GroupSettings> groups;
  };
  const Rate* in_force(Step step) const;
  double factor(uint64_t samples) const;

  ScheduleSettings schedule_;
  uint64_t full_samples_ = 0;
  double noise_scale_ = 0.0;
  std::map<Step, Rate> rates_;  // by the first step of each
};

}  // namespace drover
