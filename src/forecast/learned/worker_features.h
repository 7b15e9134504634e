// WorkerFeatures: what is known of each worker before a step, in numbers that mean the same in
// every cluster: relative to the worker's own level and spread. Fitting and deciding read the same
// ones.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "forecast/learned/history.h"

namespace drover {

inline constexpr uint32_t kFeatureCount = 12;

// Log times that a forecast may start from, in this order.
inline constexpr uint32_t kAnchorCount = 6;
enum Anchor : uint32_t {
  kLastAnchor,    // its last run-time
  kPrevAnchor,    // the one before
  kFastAnchor,    // moving averages with weight 0.7,
  kMidAnchor,     // 0.3,
  kSlowAnchor,    // and 0.05 on the newest
  kCenterAnchor,  // the median of all workers' middle averages
};

struct WorkerView {
  std::array<float, kFeatureCount> features{};
  std::array<float, kAnchorCount> anchors{};
  float scale = 1.0F;  // how far its run-times are usually off kMidAnchor; positive
};

// Keeps sign and order, and large values apart from huge ones.
float squash(float value);

class WorkerFeatures {
 public:
  // A step has ended. Workers may only become more.
  void learn(Step step, std::span<const PastTime> row);
  // A run-time that was cut short is known after all. Forgotten if it was long ago.
  void correct(Step step, WorkerId worker, float log_time);

  // What is known of a worker before the next step; of a stranger, what is known of all.
  WorkerView view(WorkerId worker) const;
  bool empty() const { return steps_ == 0; }

 private:
  struct Levels {
    float last = 0.0F;
    float prev = 0.0F;
    float fast = 0.0F;
    float mid = 0.0F;
    float slow = 0.0F;
    float spread = 0.0F;     // mean distance of measured run-times from `mid` before them
    float cut_short = 0.0F;  // share of late, fading
    uint32_t updates = 0;    // run-times, known or imputed
    uint32_t measured = 0;   // distances in `spread`
    uint32_t unheard = 0;    // steps since it last arrived
    float surprise = 0.0F;   // squashed distance of the last from `mid`, in scales
  };
  struct Recent {
    Step step = 0;
    PastTime time;
  };
  static constexpr uint32_t kRecent = 8;
  struct Worker {
    Levels base;  // before `recent`
    Levels now;
    std::array<Recent, kRecent> recent;
    uint32_t count = 0;
    uint32_t begin = 0;
  };
  float scale_of(const Levels& levels) const;
  void advance(Levels& levels, const PastTime& time) const;
  void summarise(std::span<const PastTime> row);

  uint64_t steps_ = 0;
  std::vector<Worker> workers_;
  float center_ = 0.0F;
  float pooled_spread_ = 0.0F;
  float surprise_ = 0.0F;  // mean over the last step
  std::vector<float> scratch_;
};

}  // namespace drover
