// Scoreboard: recent scores of forecasters, and their weights in a mixture.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/ids.h"

namespace drover {

// Selects `count` of `size` workers to judge in a step. Returns the index of the j-th one,
// 0 <= j < count. They ascend and are evenly spaced, because neighbours tend to behave alike. In
// `size` steps each worker is judged equally often. REQUIRES: 1 <= count <= size.
constexpr size_t judged_place(Step step, size_t j, size_t count, size_t size) {
  return (j * size + static_cast<size_t>(step % size)) / count;
}

class Scoreboard {
 public:
  // The weight of a score halves every `half_life` steps.
  Scoreboard(size_t count, double half_life);

  // Adds an entry's mean score in a step (scores.h: positive, smaller is better). Call it once per
  // step for each entry.
  void add(size_t entry, double score);
  // Resets the entry's score to `share` times that of `like`, until it has scores of its own.
  // REQUIRES: has_score(like).
  void enter(size_t entry, size_t like, double share);

  bool has_score(size_t entry) const { return entries_[entry].weight > 0.0; }
  // The decayed mean of the entry's scores. REQUIRES: has_score(entry).
  double mean(size_t entry) const { return entries_[entry].sum / entries_[entry].weight; }
  // Number of scores since enter().
  size_t scored(size_t entry) const { return entries_[entry].scored; }

  // By entry, with sum 1: proportional to exp(-sharpness * (mean / best mean - 1)); 0 for an entry
  // without a score or with a weight below `least`. All 0 if no entry has a score.
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
