// PooledTimes: run-times of all workers and all steps in one survival curve, old ones fading.
//
// A histogram on a logarithmic scale, so that memory and work do not grow with the run: 64 bins an
// octave, each with the mean of what fell into it, are exact to half a percent. Everything ever
// seen beyond today's cutoffs stays in it, however faded: among those left at risk only relative
// weights count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "forecast/kaplan_meier.h"

namespace drover {

class PooledTimes {
 public:
  // Weights halve every `half_life` steps.
  explicit PooledTimes(double half_life);

  void add(Step step, float time, bool censored);
  // REQUIRES: the same was added before.
  void remove(Step step, float time, bool censored);

  // Valid until the next change.
  const SurvivalCurve& curve();

 private:
  struct Bin {
    double weight = 0.0;
    double moment = 0.0;  // sum of weight * time
    uint64_t count = 0;   // so that a bin whose content was removed is empty, without rounding
  };
  Bin& bin_of(float time, bool censored);
  // 2^(age / half_life), relative to `origin_`.
  double weight_of(Step step);

  const double half_life_;
  Step origin_ = 0;
  Step weighed_ = 0;           // the last step asked for,
  double weight_ = 0.0;        // and its weight; 0: none yet
  std::vector<Bin> happened_;  // by the leading bits of the time
  std::vector<Bin> cut_short_;
  size_t first_;  // bins in use: first_ <= bin < end_
  size_t end_ = 0;
  bool stale_ = true;
  std::vector<Observation> observations_;  // scratch
  SurvivalCurve curve_;
};

}  // namespace drover
