#include "forecast/sort_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "core/check.h"

namespace drover {
namespace {

// Below this, std::sort is faster than going through the counters of a radix sort.
constexpr uint32_t kWorthCounting = 128;
constexpr unsigned kMaxDigitBits = 11;  // 2048 counters: 8 KB, in the first-level cache

// Positive floats order like their bits read as integers. Less the smallest of the row these span
// few bits (run-times within a factor of 16 of each other: 25), hence few passes.
void radix_sort(std::span<float> row, std::vector<uint32_t>& keys, std::vector<uint32_t>& other) {
  uint32_t smallest = std::numeric_limits<uint32_t>::max();
  uint32_t largest = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    keys[i] = std::bit_cast<uint32_t>(row[i]);
    smallest = std::min(smallest, keys[i]);
    largest = std::max(largest, keys[i]);
  }
  // A sign bit or a NaN would be larger than this.
  DROVER_CHECK(largest <= std::bit_cast<uint32_t>(std::numeric_limits<float>::infinity()));
  const auto bits = static_cast<unsigned>(std::bit_width(largest - smallest));
  if (bits == 0) return;
  const unsigned passes = (bits + kMaxDigitBits - 1) / kMaxDigitBits;
  const unsigned digit_bits = (bits + passes - 1) / passes;
  const uint32_t mask = (1U << digit_bits) - 1;
  std::array<std::array<uint32_t, 1U << kMaxDigitBits>, 3> counts;
  for (unsigned pass = 0; pass < passes; ++pass) {
    std::fill_n(counts[pass].begin(), size_t{mask} + 1, 0U);
  }
  for (uint32_t& key : std::span(keys).first(row.size())) {
    key -= smallest;
    for (unsigned pass = 0; pass < passes; ++pass) {
      ++counts[pass][(key >> (pass * digit_bits)) & mask];
    }
  }
  for (unsigned pass = 0; pass < passes; ++pass) {
    uint32_t before = 0;
    for (size_t digit = 0; digit <= mask; ++digit) {
      const uint32_t count = counts[pass][digit];
      counts[pass][digit] = before;
      before += count;
    }
    const unsigned shift = pass * digit_bits;
    for (const uint32_t key : std::span(keys).first(row.size())) {
      other[counts[pass][(key >> shift) & mask]++] = key;
    }
    keys.swap(other);
  }
  for (size_t i = 0; i < row.size(); ++i) row[i] = std::bit_cast<float>(keys[i] + smallest);
}

}  // namespace

void sort_rows(Forecast& forecast) { RowSorter().sort(forecast); }

void RowSorter::sort(Forecast& forecast) {
  if (forecast.sorted) return;
  const bool count = forecast.workers >= kWorthCounting;
  if (count) {
    keys_.resize(forecast.workers);
    other_.resize(forecast.workers);
  }
  for (uint32_t sample = 0; sample < forecast.samples; ++sample) {
    const std::span<float> row = forecast.row(sample);
    if (count) {
      radix_sort(row, keys_, other_);
    } else {
      std::sort(row.begin(), row.end());
    }
  }
  forecast.sorted = true;
}

}  // namespace drover
