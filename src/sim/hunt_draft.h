// HuntDraft: a hunt case under construction, with the random numbers that it is drawn from.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

#include "core/random_draw.h"
#include "sim/hunt_case.h"

namespace drover {

// A sequence of random draws from a seed.
class RandomDraws {
 public:
  explicit RandomDraws(uint64_t seed) : seed_(seed) {}
  double uniform() {
    return unit_interval(draw({seed_, static_cast<uint64_t>(Purpose::kFaults), next_++}));
  }
  bool bernoulli(double probability) { return uniform() < probability; }
  // An integer from `first` to `last`, both included.
  uint32_t number(uint32_t first, uint32_t last) {
    return first + static_cast<uint32_t>(uniform() * (last - first + 1));
  }
  double between(double low, double high) { return low + uniform() * (high - low); }
  Duration time(double low, double high) { return from_seconds(between(low, high)); }

 private:
  const uint64_t seed_;
  uint64_t next_ = 0;
};

struct HuntDraft {
  explicit HuntDraft(uint64_t seed) : random(seed) { hunt.settings.seed = seed; }

  RandomDraws random;
  HuntCase hunt;

  Scenario& scenario() { return hunt.settings.scenario; }
  CoordinatorSettings& job() { return hunt.settings.coordinator; }
  // Adds a line to the case's description.
  template <typename... Parts>
  void describe(fmt::format_string<Parts...> words, Parts&&... parts) {
    hunt.description.push_back(fmt::format(words, std::forward<Parts>(parts)...));
  }

  WorkerId some_worker() { return random.number(0, job().workers - 1); }
  // A trigger soon after another one.
  Trigger after(const Trigger& trigger) {
    if (trigger.step) return {.step = *trigger.step + random.number(0, 2)};
    return {.step = std::nullopt, .at = trigger.at + random.time(0.0, 2.0)};
  }
  Trigger some_trigger() {
    if (random.bernoulli(0.5))
      return {.step = random.number(0, static_cast<uint32_t>(job().steps) - 1)};
    return {.step = std::nullopt, .at = random.time(0.0, 1.5 * static_cast<double>(job().steps))};
  }
  static std::string words(const Trigger& trigger) {
    return trigger.step ? fmt::format("when step {} opens", *trigger.step)
                        : fmt::format("at {:.3f} s", seconds(trigger.at));
  }
};

}  // namespace drover
