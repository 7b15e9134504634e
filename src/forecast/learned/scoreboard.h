// Scoreboard: how forecasters have scored against each other of late, and how far each is to be
// believed.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/ids.h"

namespace drover {

// The workers judged in a step, when only `count` of `size` are: the place of number j of them,
// 0 <= j < count. They ascend evenly over all, since neighbours behave alike and would say the same
// twice; and in `size` steps every worker is judged equally often. REQUIRES: 1 <= count <= size.
constexpr size_t judged_place(Step step, size_t j, size_t count, size_t size) {
  return (j * size + static_cast<size_t>(step % size)) / count;
}

class Scoreboard {
 public:
  // Scores fade, halving every `half_life` steps.
  Scoreboard(size_t count, double half_life);

  // An entry's mean score in a step (scores.h: smaller is better, positive). Once a step, in which
  // all that are compared should be scored.
  void add(size_t entry, double score);
  // From here on the entry is taken for `share` times as bad as `like`, until it has scores of its
  // own. REQUIRES: has_score(like).
  void enter(size_t entry, size_t like, double share);

  bool has_score(size_t entry) const { return entries_[entry].weight > 0.0; }
  // Its running mean. REQUIRES: has_score(entry).
  double mean(size_t entry) const { return entries_[entry].sum / entries_[entry].weight; }
  // Steps since it entered.
  size_t scored(size_t entry) const { return entries_[entry].scored; }

  // By entry, summing to 1: proportional to exp(-sharpness * (mean / best mean - 1)); 0 for one
  // without a score or below `least`. If none has a score, all 0.
  std::span<const double> weights(double sharpness, double least);

 private:
  struct Entry {
    double sum = 0.0;
    double weight = 0.0;
    size_t scored = 0;
  };
  const double fading_;
  std::vector<Entry> entries_;
  std::vector<double> weights_;
};

}  // namespace drover
