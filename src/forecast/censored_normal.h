// Maximum likelihood for normal data of which some values are known only to be larger than a bound.
#pragma once

#include <optional>
#include <span>

namespace drover {

struct Measured {
  double value = 0.0;     // or the bound
  bool censored = false;  // only known to be larger
  double count = 1.0;     // how often
};

struct NormalFit {
  double mean = 0.0;
  double deviation = 0.0;  // zero if all values agree
};

// Nothing if no value is known: bounds alone have no maximum of the likelihood.
std::optional<NormalFit> fit_censored_normal(std::span<const Measured> data);

}  // namespace drover
