// Converts order statistics of n workers to those of m workers, by relative rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace drover {

// Output i of m is at position (i + 1/2) n / m - 1/2 of the n inputs, interpolated linearly.
// REQUIRES: `sorted` ascends; neither span is empty; they do not overlap.
inline void stretch(std::span<const float> sorted, std::span<float> out) {
  const double ratio = static_cast<double>(sorted.size()) / static_cast<double>(out.size());
  const auto last = static_cast<double>(sorted.size() - 1);
  for (size_t i = 0; i < out.size(); ++i) {
    const double at = std::clamp((static_cast<double>(i) + 0.5) * ratio - 0.5, 0.0, last);
    const auto below = static_cast<size_t>(at);
    const size_t above = std::min(below + 1, sorted.size() - 1);
    const auto part = static_cast<float>(at - static_cast<double>(below));
    out[i] = sorted[below] + part * (sorted[above] - sorted[below]);
  }
}

}  // namespace drover
