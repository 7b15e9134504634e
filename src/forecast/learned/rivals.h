// Rivals: how forecasters have done against each other of late, and how far each is to be believed.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/ids.h"

namespace drover {

// Who is judged in a step, when only `count` of `size` are: the place of number j of them, 0 <= j <
// count. They ascend evenly over all, since neighbours share their fate and would say it twice; and
// in `size` steps everybody is judged equally often. REQUIRES: 1 <= count <= size.
constexpr size_t judged_place(Step step, size_t j, size_t count, size_t size) {
  return (j * size + static_cast<size_t>(step % size)) / count;
}

class Rivals {
 public:
  // Scores fade, halving every `half_life` steps.
  Rivals(size_t count, double half_life);

  // A rival's mean score in a step (scores.h: smaller is better, positive). Once a step, in which
  // everybody in the race is to be scored.
  void add(size_t rival, double score);
  // From here on the rival is taken for `share` times as bad as `like`, until it has shown itself.
  void enter(size_t rival, size_t like, double share);

  bool racing(size_t rival) const { return lanes_[rival].weight > 0.0; }
  // Its running mean. REQUIRES: racing(rival).
  double mean(size_t rival) const { return lanes_[rival].sum / lanes_[rival].weight; }
  // Steps since it entered.
  size_t scored(size_t rival) const { return lanes_[rival].scored; }

  // By rival, summing to 1: proportional to exp(-sharpness * (mean / best mean - 1)); 0 for whoever
  // is not in the race or below `least`. If nobody is, all 0.
  std::span<const double> weights(double sharpness, double least);

 private:
  struct Lane {
    double sum = 0.0;
    double weight = 0.0;
    size_t scored = 0;
  };
  const double fading_;
  std::vector<Lane> lanes_;
  std::vector<double> weights_;
};

}  // namespace drover
