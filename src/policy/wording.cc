#include "policy/wording.h"

#include <fmt/format.h>

#include <cmath>

namespace drover {

std::string brief(double number) {
  const double size = std::abs(number);
  if (size < 1000.0 || size >= 1e9) return fmt::format("{:.3g}", number);
  return fmt::format("{:.0f}", number);
}

std::string so_many(uint32_t count, uint32_t alive) {
  if (count != alive) return fmt::format("{} of {} workers", count, alive);
  return alive == 1 ? "the only worker" : fmt::format("all {} workers", alive);
}

}  // namespace drover
