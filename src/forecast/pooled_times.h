// PooledTimes: the survival curve of the run-times of all workers, with exponentially decaying
// weights.
//
// A histogram on a logarithmic scale, so that memory and work do not grow with the run: 64 bins per
// octave, each with the mean of its values, are exact to half a percent. Old run-times beyond
// today's cutoffs keep their effect however small their weights, because the tail of the curve
// depends only on the relative weights there.
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
  // REQUIRES: an equal observation was added before.
  void remove(Step step, float time, bool censored);

  // Valid until the next change.
  const SurvivalCurve& curve();

 private:
  struct Bin {
    double weight = 0.0;
    double moment = 0.0;  // sum of weight * time
    uint64_t count = 0;   // makes a bin exactly empty when all its observations were removed
  };
  Bin& bin_of(float time, bool censored);
  // 2^(age / half_life), relative to `origin_`.
  double weight_of(Step step);

  const double half_life_;
  Step origin_ = 0;
  Step weighed_ = 0;           // the step of the last weight_of()
  double weight_ = 0.0;        // its result; 0: none yet
  std::vector<Bin> happened_;  // by the leading bits of the time
  std::vector<Bin> cut_short_;
  size_t first_;  // bins in use: first_ <= bin < end_
  size_t end_ = 0;
  bool stale_ = true;
  std::vector<Observation> observations_;  // scratch
  SurvivalCurve curve_;
};

}  // namespace drover
