// WorkerFeatures: features of each worker before a step. They are relative to the worker's own
// level and spread, so that they mean the same in every cluster. Fitting and forecasting use the
// same features.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "forecast/learned/history.h"

namespace drover {

inline constexpr uint32_t kFeatureCount = 12;

// Log run-times that a forecast is relative to, in this order.
inline constexpr uint32_t kAnchorCount = 6;
enum Anchor : uint32_t {
  kLastAnchor,    // its last run-time
  kPrevAnchor,    // the run-time before that
  kFastAnchor,    // moving average with weight 0.7 on the newest
  kMidAnchor,     // moving average with weight 0.3
  kSlowAnchor,    // moving average with weight 0.05
  kCenterAnchor,  // median of all workers' kMidAnchor averages
};

struct WorkerView {
  std::array<float, kFeatureCount> features{};
  std::array<float, kAnchorCount> anchors{};
  float scale = 1.0F;  // typical distance of its run-times from kMidAnchor; positive
};

// Compresses large values; keeps sign and order.
float squash(float value);

class WorkerFeatures {
 public:
  // Reports a step that has ended. The number of workers may only grow.
  void learn(Step step, std::span<const PastTime> row);
  // Reports the true log run-time of a censored one, which came late. Ignored for old steps.
  void correct(Step step, WorkerId worker, float log_time);

  // The features of a worker before the next step; for an unknown worker, those of an average one.
  WorkerView view(WorkerId worker) const;
  bool empty() const { return steps_ == 0; }

 private:
  struct Levels {
    float last = 0.0F;
    float prev = 0.0F;
    float fast = 0.0F;
    float mid = 0.0F;
    float slow = 0.0F;
    float spread = 0.0F;        // mean distance of measured run-times from `mid` before them
    float cut_short = 0.0F;     // decayed share of censored run-times
    uint32_t updates = 0;       // run-times, known or imputed
    uint32_t measured = 0;      // distances in `spread`
    uint32_t steps_missed = 0;  // steps since it last arrived
    float surprise = 0.0F;      // squashed distance of the last from `mid`, in scales
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
