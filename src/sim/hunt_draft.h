// HuntDraft: a hunt case in the making, with the randomness that it is drawn from.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

#include "core/random_draw.h"
#include "sim/hunt_case.h"

namespace drover {

// One draw after the other from a seed.
class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  double share() {
    return unit_interval(draw({seed_, static_cast<uint64_t>(Purpose::kFaults), next_++}));
  }
  bool chance(double probability) { return share() < probability; }
  // From `first` to `last`, both included.
  uint32_t number(uint32_t first, uint32_t last) {
    return first + static_cast<uint32_t>(share() * (last - first + 1));
  }
  double between(double low, double high) { return low + share() * (high - low); }
  Duration time(double low, double high) { return from_seconds(between(low, high)); }

 private:
  const uint64_t seed_;
  uint64_t next_ = 0;
};

struct HuntDraft {
  explicit HuntDraft(uint64_t seed) : dice(seed) { hunt.settings.seed = seed; }

  Dice dice;
  HuntCase hunt;

  Scenario& scenario() { return hunt.settings.scenario; }
  CoordinatorSettings& job() { return hunt.settings.coordinator; }
  // Adds a line to the case's story.
  template <typename... Parts>
  void describe(fmt::format_string<Parts...> words, Parts&&... parts) {
    hunt.story.push_back(fmt::format(words, std::forward<Parts>(parts)...));
  }

  WorkerId some_worker() { return dice.number(0, job().workers - 1); }
  // Soon after another.
  Moment after(const Moment& moment) {
    if (moment.step) return {.step = *moment.step + dice.number(0, 2)};
    return {.step = std::nullopt, .at = moment.at + dice.time(0.0, 2.0)};
  }
  Moment some_moment() {
    if (dice.chance(0.5)) return {.step = dice.number(0, static_cast<uint32_t>(job().steps) - 1)};
    return {.step = std::nullopt, .at = dice.time(0.0, 1.5 * static_cast<double>(job().steps))};
  }
  static std::string words(const Moment& moment) {
    return moment.step ? fmt::format("when step {} opens", *moment.step)
                       : fmt::format("at {:.3f} s", seconds(moment.at));
  }
};

}  // namespace drover
