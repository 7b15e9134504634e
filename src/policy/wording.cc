#include "policy/wording.h"

#include <fmt/format.h>

#include <cmath>

#include "core/text.h"

namespace drover {
namespace {

// Smaller values round to three digits of the next smaller unit.
constexpr double kRoundsToOne = 0.9995;

}  // namespace

std::string number_text(double number) {
  const double size = std::abs(number);
  if (size < 1000.0 * kRoundsToOne || size >= 1e9) return fmt::format("{:.3g}", number);
  return (number < 0.0 ? "-" : "") + with_commas(static_cast<uint64_t>(std::llround(size)));
}

std::string time_text(double time, TimeUnit unit) {
  if (unit == TimeUnit::kUnknown) return number_text(time) + " time units";
  const double size = std::abs(time);
  if (size > 0.0 && size < 1e-3 * kRoundsToOne) return number_text(1e6 * time) + " us";
  if (size > 0.0 && size < kRoundsToOne) return number_text(1e3 * time) + " ms";
  return number_text(time) + " s";
}

std::string rate_text(double gradients_per_time, TimeUnit unit) {
  return number_text(gradients_per_time) +
         (unit == TimeUnit::kUnknown ? " gradients per time unit" : " gradients/s");
}

std::string worker_count_text(uint32_t count, uint32_t alive) {
  if (count != alive) return fmt::format("{} of {}", count, alive);
  return alive == 1 ? "the only worker" : fmt::format("all {} workers", alive);
}

std::string time_limit_text(double time_limit, TimeUnit unit) {
  return time_limit < kNoTimeLimit ? " or " + time_text(time_limit, unit) : "";
}

}  // namespace drover
