// Choices: reads the bytes of an input as a sequence of decisions, so that a change of a byte
// changes what happens. After the end of the input every choice is zero.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/time.h"

namespace drover::fuzz {

class Choices {
 public:
  explicit Choices(std::span<const std::byte> input) : rest_(input) {}

  bool over() const { return rest_.empty(); }
  std::span<const std::byte> take(size_t size) {
    const auto taken = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  template <typename Number>
  Number any() {
    Number number{};
    const auto bytes = take(sizeof(Number));
    if (!bytes.empty()) std::memcpy(&number, bytes.data(), bytes.size());
    return number;
  }
  // REQUIRES: 1 <= limit <= 256.
  uint32_t below(uint32_t limit) { return any<uint8_t>() % limit; }
  bool flip() { return below(2) == 1; }
  // Mostly a number near `near`; also numbers at which integers wrap around, and any others.
  uint64_t around(uint64_t near) {
    constexpr std::array<uint64_t, 6> kEdges = {
        0, 1, ~uint64_t{0}, ~uint64_t{0} - 1, uint64_t{1} << 63, (uint64_t{1} << 63) - 1};
    const uint32_t choice = any<uint8_t>();
    if (choice < 240) return near + choice % 8 - std::min<uint64_t>(choice % 8 < 6 ? 0 : 8, near);
    if (choice < 252) return kEdges[choice % kEdges.size()];
    return any<uint64_t>();
  }
  // From zero to some seconds.
  Duration pause() {
    const uint32_t choice = any<uint8_t>();
    return Duration(int64_t{choice & 15} << (choice / 16 * 2));
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace drover::fuzz
