#include "forecast/learned/scoreboard.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace drover {

Scoreboard::Scoreboard(size_t count, double half_life)
    : fading_(std::exp2(-1.0 / half_life)), entries_(count), weights_(count) {
  DROVER_CHECK(half_life > 0.0);
}

void Scoreboard::add(size_t entry, double score) {
  Entry& scores = entries_[entry];
  scores.sum = fading_ * scores.sum + score;
  scores.weight = fading_ * scores.weight + 1.0;
  ++scores.scored;
}

void Scoreboard::enter(size_t entry, size_t like, double share) {
  DROVER_CHECK(has_score(like));
  entries_[entry] = {share * entries_[like].sum, entries_[like].weight, 0};
}

std::span<const double> Scoreboard::weights(double sharpness, double least) {
  double best = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (has_score(i)) best = std::min(best, mean(i));
  }
  // If the best score is zero, only entries with a zero score share the weight.
  best = std::max(best, std::numeric_limits<double>::min());
  double sum = 0.0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    weights_[i] =
        has_score(i) ? std::exp(-sharpness * (std::max(mean(i), best) / best - 1.0)) : 0.0;
    sum += weights_[i];
  }
  double kept = 0.0;
  for (double& weight : weights_) {
    if (weight < least * sum) weight = 0.0;
    kept += weight;
  }
  for (double& weight : weights_) weight = kept > 0.0 ? weight / kept : 0.0;
  return weights_;
}

}  // namespace drover
