// Hedging: a cutoff combined with a time limit. A forecast may be wrong about all workers of a node
// at once, and with a cutoff alone the step would wait for all of them.
//
// A step with cutoff c and time limit L closes with c gradients at x_(c) if that is before L, else
// at L with the N(L) gradients that have arrived. c and L maximise, over the samples,
//   argmax E[ x_(c) <= L ? value(c, x_(c)) : value(N(L), L) ],  value as in objective.h.
#pragma once

#include <cstdint>
#include <vector>

#include "forecast/forecast.h"
#include "policy/objective.h"

namespace drover {

struct Hedged {
  ExpectedThroughput expected;
  double time_limit = 0.0;
  uint32_t at_least = 1;  // gradients that the step needs even beyond the limit
};

// Keeps its buffers, so that a decision allocates nothing.
class HedgeSearch {
 public:
  // Improves limit and cutoff alternately, instead of trying all pairs. REQUIRES: as for
  // CutoffSearch::best().
  Hedged best(const Forecast& forecast, const Terms& terms);

 private:
  void pool(const Forecast& forecast);
  // Chooses candidates from pooled_[begin..end-1], and counts the arrivals until each in each
  // sample.
  void try_limits(const Forecast& forecast, size_t begin, size_t end);
  void find_best_limit(const Forecast& forecast, const Terms& terms);
  void find_best_cutoff(const Forecast& forecast, const Terms& terms);
  // The value of sample k if its step closes at candidate j.
  double closed_at(const Forecast& forecast, const Terms& terms, uint32_t k, size_t j) const;

  CutoffSearch search_;
  std::vector<float> pooled_;       // some of all samples, ascending
  std::vector<size_t> ranks_;       // of the candidates in pooled_
  std::vector<double> candidates_;  // limits, ascending
  std::vector<uint32_t> in_time_;   // samples x candidates
  std::vector<double> values_;      // by candidate or by cutoff - 1
  std::vector<double> closed_;      // by number of arrivals: value of samples closed by the limit
  // The current best pair.
  uint32_t cutoff_ = 0;
  size_t limit_ = 0;
  double value_ = 0.0;
};

}  // namespace drover
