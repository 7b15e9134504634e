// Levels: how fast each worker is, in log time, by several rules at once, and which rule has been
// closest of late.
//
// The rules are the last value, an exponential mean, rolling medians, and the value one period ago.
// One rule is used for all workers: the one with the smallest fading mean of absolute errors. Of a
// worker that was cut short, only the part by which its bound exceeds the level counts as an error.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"

namespace drover {

// What is known of one worker in one step; log time.
enum class Seen : uint8_t {
  kAbsent,   // it took no part
  kArrived,  // its run-time
  kFilled,   // only a bound; the run-time is a draw beyond it
};

class Levels {
 public:
  enum Rule : uint8_t { kLast, kEwma, kMedian5, kMedian15, kMedian45, kPeriod };
  static constexpr size_t kRules = 6;
  static constexpr uint32_t kWindow = 45;

  // Makes space for this many workers. Known workers keep their levels.
  void grow(size_t workers);
  size_t workers() const { return tracks_.size(); }
  bool knows(WorkerId worker) const { return worker < tracks_.size() && tracks_[worker].count > 0; }
  // REQUIRES: knows(worker).
  float level(Rule rule, WorkerId worker) const { return tracks_[worker].level[rule]; }
  Rule best() const { return best_; }
  double error(Rule rule) const { return errors_[rule]; }
  uint32_t period() const { return period_; }

  // Compares the levels as they are with what a step has shown: `bounds` is by worker the run-time,
  // or its bound where seen says kFilled. To be called before learn().
  void judge(std::span<const float> bounds, std::span<const Seen> seen);
  // A step has ended. `times`: log times, filled where only a bound is known.
  void learn(Step step, std::span<const float> times, std::span<const Seen> seen);
  // A filled time is known after all.
  void correct(Step step, WorkerId worker, float time);

 private:
  struct Track {
    std::array<float, kRules> level{};
    std::array<float, kWindow> times{};  // a ring
    std::array<uint32_t, kWindow> steps{};
    uint32_t count = 0;  // in the ring
    uint32_t next = 0;
    float base = 0.0F;  // exponential mean before the oldest in the ring
  };
  static constexpr uint32_t kLongestPeriod = 100;

  void refresh(Track& track) const;
  void judge_periods(std::span<const float> times, std::span<const Seen> seen);
  void find_period_levels();

  std::vector<Track> tracks_;
  std::array<double, kRules> errors_{};
  double weight_ = 0.0;
  Rule best_ = kLast;
  // Past steps for periods: a ring of the filled times.
  std::vector<std::vector<float>> past_;
  uint64_t learned_ = 0;
  std::array<double, kLongestPeriod + 1> period_errors_{};
  std::array<double, kLongestPeriod + 1> period_weights_{};
  uint32_t period_ = 0;  // 0: none is known
};

}  // namespace drover
