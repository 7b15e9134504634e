// Hedging: a cutoff together with a time at which the step closes whoever is there, because a
// forecast may be wrong about all of a node at once, and a count alone would wait that error out.
//
// A step with cutoff c and time limit L ends with c gradients at x_(c) if that is by L, else at L
// with the N(L) that are there. Over the samples, c and L are chosen together:
//   argmax E[ x_(c) <= L ? value(c, x_(c)) : value(N(L), L) ],  value as in objective.h.
#pragma once

#include <cstdint>
#include <vector>

#include "forecast/forecast.h"
#include "policy/objective.h"

namespace drover {

struct Hedged {
  ExpectedThroughput promise;
  double time_limit = 0.0;
  uint32_t at_least = 1;  // gradients that are waited for also beyond the limit
};

// Keeps its buffers, so that a decision allocates nothing.
class HedgeSearch {
 public:
  // Limit and cutoff are improved in turns: not every pair is tried. REQUIRES: as
  // CutoffSearch::best.
  Hedged best(const Forecast& forecast, const Terms& terms);

 private:
  void pool(const Forecast& forecast);
  // Chooses candidates from pooled_[begin..end-1], and counts who is in by then in each sample.
  void try_limits(const Forecast& forecast, size_t begin, size_t end);
  void find_best_limit(const Forecast& forecast, const Terms& terms);
  void find_best_cutoff(const Forecast& forecast, const Terms& terms);
  // What sample k is worth if its step closes at candidate j.
  double closed_at(const Forecast& forecast, const Terms& terms, uint32_t k, size_t j) const;

  CutoffSearch search_;
  std::vector<float> pooled_;       // some of all samples, ascending
  std::vector<size_t> ranks_;       // of the candidates in pooled_
  std::vector<double> candidates_;  // limits, ascending
  std::vector<uint32_t> in_time_;   // samples x candidates
  std::vector<double> values_;      // by candidate or by cutoff - 1
  std::vector<double> closed_;      // by cutoff - 1: what the limit adds from there on
  // The pair that is being improved.
  uint32_t cutoff_ = 0;
  size_t limit_ = 0;
  double value_ = 0.0;
};

}  // namespace drover
