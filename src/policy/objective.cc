#include "policy/objective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "core/check.h"
#include "core/nearest.h"
#include "policy/wording.h"

namespace drover {
namespace {

// Long enough that one unusual step does not matter, short enough to follow changing load.
constexpr double kMemory = 50.0;  // steps

// Cutoffs are evaluated in blocks of this size. A block that cannot contain the best is skipped.
constexpr size_t kStretch = 32;
// Rounding error of sums of doubles, with a margin.
constexpr double kRounding = 1e-9;

constexpr std::array<std::string_view, 3> kNames = {"throughput", "rate", "goodput"};

}  // namespace

std::string_view name_of(Objective objective) { return kNames[static_cast<size_t>(objective)]; }

Result<Objective> parse_objective(std::string_view name) {
  for (const Objective each : {Objective::kThroughput, Objective::kRate, Objective::kGoodput}) {
    if (name == name_of(each)) return each;
  }
  return invalid_input(
      fmt::format("unknown objective '{}'.{} Objectives: throughput, rate, goodput", name,
                  did_you_mean(name, kNames)));
}

// Inlined where the stride is known.
inline void CutoffSearch::add_up(const Forecast& forecast, const Terms& terms, size_t begin,
                                 size_t end, size_t stride) {
  for (uint32_t sample = 0; sample < forecast.samples; ++sample) {
    const float* const row = forecast.row(sample).data();
    // Two loops, so that the compiler can vectorise them. Terms that are equal for all samples,
    // such as `gradients` for `rate`, are added at the end.
    if (terms.lambda) {
      for (size_t i = begin; i < end; i += stride) sums_[i] += static_cast<double>(row[i]);
    } else {
      for (size_t i = begin; i < end; i += stride) {
        const auto gradients = static_cast<double>(static_cast<int32_t>(i) + 1);
        sums_[i] += gradients / (terms.overhead + static_cast<double>(row[i]));
      }
    }
  }
}

ExpectedThroughput CutoffSearch::best(const Forecast& forecast, const Terms& terms) {
  DROVER_CHECK(forecast.sorted);
  DROVER_CHECK(forecast.samples > 0);
  DROVER_CHECK(forecast.workers > 0);
  const size_t workers = forecast.workers;
  const auto samples = static_cast<double>(forecast.samples);
  const auto value = [&](size_t i) {
    const double mean = sums_[i] / samples;
    const auto cutoff = static_cast<uint32_t>(i + 1);
    return terms.lambda ? terms.value(cutoff, mean) : mean * terms.efficiency(cutoff);
  };
  sums_.assign(workers, 0.0);
  // The first cutoff of a block bounds the others: they have more gradients by a known number, and
  // none of them arrives sooner. For goodput, p(c) takes the place of c. It also grows with c:
  // p'(c) = nu (nu + 1) / (nu + c)^2.
  add_up(forecast, terms, 0, workers, kStretch);
  double least = -std::numeric_limits<double>::infinity();
  for (size_t begin = 0; begin < workers; begin += kStretch) least = std::max(least, value(begin));
  ExpectedThroughput best;
  for (size_t begin = 0; begin < workers; begin += kStretch) {
    const size_t end = std::min(workers, begin + kStretch);
    const auto first = static_cast<double>(begin + 1);
    const auto last = static_cast<double>(end);
    const double less_efficient = terms.efficiency(last) / terms.efficiency(first);
    const double most = terms.lambda ? value(begin) + (last - first)
                                     : value(begin) * (last / first) * less_efficient;
    if (most < least - kRounding * std::abs(least)) continue;
    add_up(forecast, terms, begin + 1, end, 1);
    for (size_t i = begin; i < end; ++i) {
      if (best.cutoff == 0 || value(i) >= best.value) {
        best = {static_cast<uint32_t>(i + 1), value(i), 0.0};
      }
    }
  }
  for (uint32_t sample = 0; sample < forecast.samples; ++sample) {
    best.arrival += static_cast<double>(forecast.row(sample)[best.cutoff - 1]) / samples;
  }
  return best;
}

ExpectedThroughput CutoffSearch::best(std::span<const double> sorted, const Terms& terms) {
  DROVER_CHECK(!sorted.empty());
  ExpectedThroughput best;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const auto cutoff = static_cast<uint32_t>(i + 1);
    const double value = terms.value(cutoff, sorted[i]);
    if (best.cutoff == 0 || value >= best.value) best = {cutoff, value, sorted[i]};
  }
  return best;
}

Terms Goal::terms(double overhead, double noise) {
  terms_ = {};
  terms_.overhead = overhead;
  if (objective_ == Objective::kGoodput) terms_.noise = noise;
  return objective_ == Objective::kRate ? long_run() : terms_;
}

Terms Goal::long_run() const {
  Terms terms = terms_;
  if (time_ > 0.0 && gradients_ > 0.0) terms.lambda = gradients_ / time_;
  return terms;
}

void Goal::learn(const StepTimes& times) {
  constexpr double kFading = 1.0 - 1.0 / kMemory;
  double gradients = times.contributors;
  if (!times.shares.empty()) {
    gradients = 0.0;
    for (size_t i = 0; i < times.known.size(); ++i)
      gradients += times.known[i] == Known::kArrived ? times.shares[i] : 0.0;
  }
  gradients_ = kFading * gradients_ + gradients * terms_.efficiency(gradients);
  time_ = kFading * time_ + terms_.overhead + times.elapsed;
}

std::string describe(const ExpectedThroughput& expected, const Terms& terms, TimeUnit unit) {
  const std::string at = time_text(expected.arrival, unit);
  if (terms.lambda) {
    return fmt::format("expect them by {}, long-run throughput {}", at,
                       rate_text(*terms.lambda, unit));
  }
  const std::string rate = rate_text(expected.value, unit);
  if (!terms.noise) return fmt::format("expect {} at {}", rate, at);
  if (*terms.noise <= 0.0)
    return fmt::format("expect {} at {}, noise scale not known yet", rate, at);
  return fmt::format("expect a goodput of {} at {}, noise scale {} gradients", rate, at,
                     number_text(*terms.noise));
}

}  // namespace drover
