// StepMemory: past steps as whole vectors, and how much each says about the next.
//
// Of a step it keeps the log times, filled where only a bound is known, and by level rule the
// residuals: log time less the level before the step. A draw of the next step is the levels of now
// plus the whole residual vector of one past step, so that common shocks, coupling, "exactly one is
// slow each time" and tails all come from the data, and nothing assumes independence.
//
// Weights: most of them halve every kHalfLife steps. The rest is spread evenly over all steps since
// the last change, since a stall that comes once in 300 steps would be forgotten otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/ids.h"
#include "forecast/joint/levels.h"

namespace drover {

class StepMemory {
 public:
  struct Row {
    Step step = 0;
    std::vector<float> times;
    std::vector<Seen> seen;
    std::vector<float> bounds;     // what is known: the log time, or its bound where it was filled
    std::vector<float> residuals;  // by rule, then worker
    std::array<float, Levels::kRules> shifts{};  // by rule: the middle residual, common to all
    float common = 0.0F;                         // level of all before the step
    double weight = 1.0;                         // less if its levels were hardly known
    bool first = false;                          // no levels were known before it

    // What is known of a worker beyond the shift of all; a bound of it where it was filled.
    float known_beyond_shift(size_t rule, WorkerId worker) const {
      return residual(rule, worker) - (times[worker] - bounds[worker]) - shifts[rule];
    }
    float residual(size_t rule, WorkerId worker) const {
      return residuals[rule * times.size() + worker];
    }
  };

  void add(Row row);
  // Every step before the newest is of another time.
  void forget_tails() { since_ = rows_.empty() ? 0 : rows_.size() - 1; }
  size_t size() const { return rows_.size(); }
  const Row& row(size_t index) const { return rows_[index]; }  // ascending by step
  Row* find(Step step);
  // By row, summing to 1.
  std::span<const double> weights();

 private:
  std::deque<Row> rows_;
  size_t since_ = 0;  // first row after the last change
  std::vector<double> weights_;
};

}  // namespace drover
