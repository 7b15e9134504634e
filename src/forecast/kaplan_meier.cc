#include "forecast/kaplan_meier.h"

#include <algorithm>
#include <limits>

namespace drover {

void SurvivalCurve::fit(std::span<const Observation> sorted) {
  times_.clear();
  cumulated_.clear();
  size_ = sorted.size();
  last_ = sorted.empty() ? 0.0 : sorted.back().time;
  // Summed from the end, so that small weights in the tail are not lost by cancellation, and the
  // last run-time's risk is exactly its own weight.
  at_risk_.resize(sorted.size() + 1);
  at_risk_[sorted.size()] = 0.0;
  for (size_t i = sorted.size(); i-- > 0;) at_risk_[i] = at_risk_[i + 1] + sorted[i].weight;

  double surviving = 1.0;
  for (size_t begin = 0; begin < sorted.size();) {
    size_t end = begin;
    double happened = 0.0;
    for (; end < sorted.size() && sorted[end].time == sorted[begin].time; ++end) {
      if (!sorted[end].censored) happened += sorted[end].weight;
    }
    if (happened > 0.0) {
      // Computed from the remaining weight instead of 1 - happened / at_risk, so that it is exactly
      // zero when none remains.
      double rest = at_risk_[end];
      for (size_t i = begin; i < end; ++i) {
        if (sorted[i].censored) rest += sorted[i].weight;
      }
      surviving *= rest / at_risk_[begin];
      times_.push_back(sorted[begin].time);
      cumulated_.push_back(1.0 - surviving);
    }
    begin = end;
  }
}

double SurvivalCurve::survival(double t) const {
  const auto after = std::upper_bound(times_.begin(), times_.end(), t);
  if (after == times_.begin()) return 1.0;
  return 1.0 - cumulated_[static_cast<size_t>(after - times_.begin()) - 1];
}

double SurvivalCurve::quantile(double u) const {
  const auto found = std::lower_bound(cumulated_.begin(), cumulated_.end(), u);
  if (found == cumulated_.end()) return std::numeric_limits<double>::infinity();
  return times_[static_cast<size_t>(found - cumulated_.begin())];
}

SurvivalCurve kaplan_meier(std::vector<Observation> observations) {
  std::sort(observations.begin(), observations.end(),
            [](const Observation& a, const Observation& b) { return a.time < b.time; });
  SurvivalCurve curve;
  curve.fit(observations);
  return curve;
}

}  // namespace drover
