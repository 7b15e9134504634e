// Maximum likelihood fit of a normal distribution to data with right-censored values.
#pragma once

#include <optional>
#include <span>

namespace drover {

struct Measured {
  double value = 0.0;     // the value, or its lower bound
  bool censored = false;  // only the bound is known
  double count = 1.0;     // number of equal values
};

struct NormalFit {
  double mean = 0.0;
  double deviation = 0.0;  // zero if all values agree
};

// Nothing if all values are censored: the likelihood then has no maximum.
std::optional<NormalFit> fit_censored_normal(std::span<const Measured> data);

}  // namespace drover
