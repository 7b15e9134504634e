#include "forecast/sort_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "core/check.h"

namespace drover {
namespace {

// Below this size, std::sort is faster than counting.
constexpr uint32_t kWorthCounting = 64;
constexpr unsigned kMostDigitBits = 11;  // 2048 counters: 8 KB, in the first-level cache

using Counters = std::array<uint32_t, 1U << kMostDigitBits>;

void to_places(Counters& counts, uint32_t digits) {
  uint32_t before = 0;
  for (uint32_t digit = 0; digit < digits; ++digit) {
    const uint32_t count = counts[digit];
    counts[digit] = before;
    before += count;
  }
}

// Finishes a row that is nearly sorted, by insertion. Returns false if it needs too many moves.
bool insert_back(std::span<float> row) {
  size_t moves_left = 8 * row.size();
  for (size_t i = 1; i < row.size(); ++i) {
    const float value = row[i];
    if (row[i - 1] <= value) continue;
    size_t at = i;
    for (; at > 0 && row[at - 1] > value; --at) row[at] = row[at - 1];
    row[at] = value;
    if (moves_left < i - at) return false;
    moves_left -= i - at;
  }
  return true;
}

// Positive floats have the order of their bits as integers. After subtraction of the smallest of
// the row, they span few bits (25 for run-times within a factor of 16). A radix sort by the upper
// bits, in two digits with about as many values as there are workers, sorts a row almost
// completely.
void radix_sort(std::span<float> row, std::vector<uint32_t>& keys) {
  int32_t low = std::numeric_limits<int32_t>::max();
  int32_t high = std::numeric_limits<int32_t>::min();
  for (const float value : row) {
    low = std::min(low, std::bit_cast<int32_t>(value));
    high = std::max(high, std::bit_cast<int32_t>(value));
  }
  // As integers, negative floats are below 0 and NaNs above infinity.
  DROVER_CHECK(low >= 0);
  DROVER_CHECK(high <= std::bit_cast<int32_t>(std::numeric_limits<float>::infinity()));
  const auto smallest = static_cast<uint32_t>(low);
  const auto bits = static_cast<unsigned>(std::bit_width(static_cast<uint32_t>(high - low)));
  if (bits == 0) return;
  const unsigned digit_bits =
      std::min({kMostDigitBits, static_cast<unsigned>(std::bit_width(row.size())), (bits + 1) / 2});
  const unsigned dropped = bits - std::min(bits, 2 * digit_bits);
  const uint32_t digits = 1U << digit_bits;
  const uint32_t mask = digits - 1;
  const auto lower = [&](uint32_t key) { return (key >> dropped) & mask; };
  const auto upper = [&](uint32_t key) { return key >> (dropped + digit_bits); };
  Counters lower_counts;
  Counters upper_counts;
  std::fill_n(lower_counts.begin(), digits, 0U);
  std::fill_n(upper_counts.begin(), digits, 0U);
  for (const float value : row) {
    const uint32_t key = std::bit_cast<uint32_t>(value) - smallest;
    ++lower_counts[lower(key)];
    ++upper_counts[upper(key)];
  }
  to_places(lower_counts, digits);
  to_places(upper_counts, digits);
  for (const float value : row) {
    const uint32_t key = std::bit_cast<uint32_t>(value) - smallest;
    keys[lower_counts[lower(key)]++] = key;
  }
  for (size_t i = 0; i < row.size(); ++i) {
    const uint32_t key = keys[i];
    row[upper_counts[upper(key)]++] = std::bit_cast<float>(key + smallest);
  }
  // insert_back() fails if many values differ only in the dropped bits.
  if (dropped > 0 && !insert_back(row)) std::sort(row.begin(), row.end());
}

}  // namespace

void sort_rows(Forecast& forecast) { RowSorter().sort(forecast); }

void RowSorter::sort(Forecast& forecast) {
  if (forecast.sorted) return;
  const bool count = forecast.workers >= kWorthCounting;
  if (count) keys_.resize(forecast.workers);
  for (uint32_t sample = 0; sample < forecast.samples; ++sample) {
    const std::span<float> row = forecast.row(sample);
    if (count) {
      radix_sort(row, keys_);
    } else {
      std::sort(row.begin(), row.end());
    }
  }
  forecast.sorted = true;
}

}  // namespace drover
