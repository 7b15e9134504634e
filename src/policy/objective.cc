#include "policy/objective.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "core/check.h"
#include "core/nearest.h"
#include "policy/wording.h"

namespace drover {
namespace {

// Long enough that one odd step does not matter, short enough to follow the day of a cluster.
constexpr double kMemory = 50.0;  // steps

constexpr std::array<std::string_view, 2> kNames = {"throughput", "rate"};

}  // namespace

std::string_view name_of(Objective objective) {
  return kNames[objective == Objective::kRate ? 1 : 0];
}

Result<Objective> parse_objective(std::string_view name) {
  for (const Objective each : {Objective::kThroughput, Objective::kRate}) {
    if (name == name_of(each)) return each;
  }
  return invalid_input(fmt::format("there is no objective '{}'.{} There are throughput and rate",
                                   name, did_you_mean(name, kNames)));
}

Promise CutoffSearch::best(const Forecast& forecast, const Terms& terms) {
  DROVER_CHECK(forecast.sorted);
  DROVER_CHECK(forecast.samples > 0);
  DROVER_CHECK(forecast.workers > 0);
  sums_.assign(forecast.workers, 0.0);
  for (uint32_t sample = 0; sample < forecast.samples; ++sample) {
    const float* const row = forecast.row(sample).data();
    // Apart, so that the compiler can make vectors of them. What is the same for all samples, as
    // `gradients` in `rate`, is left for the end.
    if (terms.lambda) {
      for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += static_cast<double>(row[i]);
    } else {
      for (size_t i = 0; i < sums_.size(); ++i) {
        const auto gradients = static_cast<double>(static_cast<int32_t>(i) + 1);
        sums_[i] += gradients / (terms.overhead + static_cast<double>(row[i]));
      }
    }
  }
  const auto samples = static_cast<double>(forecast.samples);
  Promise best;
  for (uint32_t cutoff = 1; cutoff <= forecast.workers; ++cutoff) {
    const double mean = sums_[cutoff - 1] / samples;
    const double value = terms.lambda ? terms.value(cutoff, mean) : mean;
    if (best.cutoff == 0 || value >= best.value) best = {cutoff, value, 0.0};
  }
  for (uint32_t sample = 0; sample < forecast.samples; ++sample) {
    best.arrival += static_cast<double>(forecast.row(sample)[best.cutoff - 1]) / samples;
  }
  return best;
}

Promise CutoffSearch::best(std::span<const double> sorted, const Terms& terms) {
  DROVER_CHECK(!sorted.empty());
  Promise best;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const auto cutoff = static_cast<uint32_t>(i + 1);
    const double value = terms.value(cutoff, sorted[i]);
    if (best.cutoff == 0 || value >= best.value) best = {cutoff, value, sorted[i]};
  }
  return best;
}

Terms Goal::terms(double overhead) {
  overhead_ = overhead;
  const bool known = objective_ == Objective::kRate && time_ > 0.0 && gradients_ > 0.0;
  return {overhead, known ? std::optional(gradients_ / time_) : std::nullopt};
}

void Goal::learn(const StepTimes& times) {
  constexpr double kFading = 1.0 - 1.0 / kMemory;
  gradients_ = kFading * gradients_ + static_cast<double>(times.contributors);
  time_ = kFading * time_ + overhead_ + times.elapsed;
}

std::string describe(const Promise& promise, const Terms& terms) {
  if (!terms.lambda) {
    return fmt::format("{} gradients per time expected by {}", brief(promise.value),
                       brief(promise.arrival));
  }
  return fmt::format("expected by {}, at {} gradients per time in the long run",
                     brief(promise.arrival), brief(*terms.lambda));
}

}  // namespace drover
