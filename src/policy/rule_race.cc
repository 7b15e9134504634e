#include "policy/rule_race.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace drover {
namespace {

constexpr double kFading = 0.97;
// What another rule must be better by: a share of the leader's gradients, and standard errors.
constexpr double kMargin = 0.003;
constexpr double kErrors = 1.0;

}  // namespace

RuleRace::RuleRace(size_t rules, size_t first) : entries_(rules), leader_(first) {
  DROVER_CHECK(first < rules);
}

void RuleRace::add(const std::vector<Result>& results) {
  DROVER_CHECK(results.size() == entries_.size());
  weight_ = kFading * weight_ + 1.0;
  weight_squares_ = kFading * kFading * weight_squares_ + 1.0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].gradients = kFading * entries_[i].gradients + results[i].gradients;
    entries_[i].time = kFading * entries_[i].time + results[i].time;
  }
  const Entry& leading = entries_[leader_];
  const double rate = leading.gradients / leading.time;
  size_t best = leader_;
  double best_gain = 0.0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const double gain = (results[i].gradients - results[leader_].gradients) -
                        rate * (results[i].time - results[leader_].time);
    Entry& entry = entries_[i];
    entry.squares = kFading * entry.squares + gain * gain;
    entry.difference = (entry.gradients - leading.gradients) - rate * (entry.time - leading.time);
    const double mean = entry.difference / weight_;
    const double variance = std::max(0.0, entry.squares / weight_ - mean * mean);
    const double error = std::sqrt(variance * weight_squares_) / weight_;
    const double relative = entry.difference / leading.gradients;
    if (relative < kMargin || mean < kErrors * error || relative <= best_gain) continue;
    best = i;
    best_gain = relative;
  }
  leader_ = best;
}

}  // namespace drover
