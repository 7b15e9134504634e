#include "forecast/learned/rivals.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace drover {

Rivals::Rivals(size_t count, double half_life)
    : fading_(std::exp2(-1.0 / half_life)), lanes_(count), weights_(count) {
  DROVER_CHECK(half_life > 0.0);
}

void Rivals::add(size_t rival, double score) {
  Lane& lane = lanes_[rival];
  lane.sum = fading_ * lane.sum + score;
  lane.weight = fading_ * lane.weight + 1.0;
  ++lane.scored;
}

void Rivals::enter(size_t rival, size_t like, double share) {
  DROVER_CHECK(racing(like));
  lanes_[rival] = {share * lanes_[like].sum, lanes_[like].weight, 0};
}

std::span<const double> Rivals::weights(double sharpness, double least) {
  double best = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (racing(i)) best = std::min(best, mean(i));
  }
  // Nobody is ever wrong: all are as good.
  best = std::max(best, std::numeric_limits<double>::min());
  double sum = 0.0;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    weights_[i] = racing(i) ? std::exp(-sharpness * (std::max(mean(i), best) / best - 1.0)) : 0.0;
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
