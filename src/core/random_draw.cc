#include "core/random_draw.h"

#include "core/check.h"

namespace drover {
namespace {

// Four rounds suffice for large sizes. With five or ten elements, four rounds favour some positions
// by a third.
constexpr uint64_t kRounds = 8;

}  // namespace

Permutation::Permutation(uint64_t size, uint64_t key) : size_(size), key_(key), half_bits_(1) {
  DROVER_CHECK(size >= 1);
  while (half_bits_ < 32 && (uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
}

uint64_t Permutation::encrypt(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t next = left ^ (draw({key_, round, right}) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

uint64_t Permutation::operator()(uint64_t index) const {
  DROVER_CHECK(index < size_);
  // The network permutes a range at most four times as large, so this ends after few iterations.
  uint64_t value = encrypt(index);
  while (value >= size_) value = encrypt(value);
  return value;
}

uint64_t sample_at(uint64_t seed, uint64_t size, uint64_t position) {
  DROVER_CHECK(size >= 1);
  const uint64_t stretch = position / size;
  const uint64_t key = draw({seed, static_cast<uint64_t>(Purpose::kSamples), stretch});
  return Permutation(size, key)(position % size);
}

}  // namespace drover
