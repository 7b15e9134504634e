// Simulated clusters with a known distribution, and the censored record of a run on them, for
// bench/drift.cc.
//
// The first 60 steps wait for all workers. Each of the next 200 steps closes with the first 70 % of
// the gradients, independent of forecasts. The last 20 steps are judged.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/random_draw.h"
#include "forecast/forecast.h"
#include "forecast/normal.h"
#include "forecast/sort_rows.h"
#include "sim/observed_times.h"

namespace drover {

inline constexpr uint32_t kCluster = 40;
inline constexpr uint32_t kSlow = 10;  // the first ones
inline constexpr uint32_t kNode = 4;   // workers
inline constexpr uint32_t kCutoff = 28;
inline constexpr Step kFull = 60;
inline constexpr Step kSteps = 260;
inline constexpr Step kJudged =
    20;  // the last ones; as many before them determine which workers are mostly censored
inline constexpr uint32_t kTruth = 1000;  // samples of the true distribution of a step
inline constexpr double kSpread = 0.1;    // of a worker's log time

struct Cluster {
  std::string_view name;
  double from = 0.0;  // slowdown of the slow workers while steps wait for all
  double to = 0.0;    // and when the judged steps begin; linear on the log scale between
  bool regimes = false;
};
inline constexpr std::array kClusters = {
    Cluster{"steady", 1.5, 1.5},
    Cluster{"recovering", 2.0, 1.25},
    Cluster{"worsening", 1.5, 3.0},
    Cluster{"regimes", 1.0, 1.0, true},
};

// One run of a cluster. Sample 0 is the actual run; the others are drawn from the distribution of a
// step given all earlier steps.
class Run {
 public:
  Run(const Cluster& cluster, uint64_t seed) : cluster_(cluster), seed_(seed) {
    constexpr double kFrom = 0.25;  // share of nodes that are slow at first; the long-run average
    for (uint32_t node = 0; node < kCluster / kNode; ++node) {
      ill_.push_back({unit_draw(0, node, 0, 2) < kFrom});
      for (Step step = 1; step < kSteps; ++step) {
        ill_[node].push_back(is_ill(step, node, 0));
      }
    }
  }

  double time(Step step, WorkerId worker, uint64_t sample) const {
    const double own = 0.05 * normal_quantile(unit_draw(0, worker, 0, 3));
    const double noise = kSpread * normal_quantile(unit_draw(step, worker, sample, 1));
    return std::exp(own + slowness(step, worker, sample) + noise);
  }

 private:
  double unit_draw(Step step, uint64_t party, uint64_t sample, uint64_t use) const {
    // Never 0, whose quantile is infinite.
    return unit_interval(
        draw({seed_, static_cast<uint64_t>(Purpose::kRunTimes), step, party, sample, use}) |
        (uint64_t{1} << 11));
  }
  bool is_ill(Step step, uint32_t node, uint64_t sample) const {
    constexpr double kFallsIll = 1.0 / 60.0;
    constexpr double kRecovers = 1.0 / 20.0;
    if (step == 0) return ill_[node][0];
    const double turn = unit_draw(step, node, sample, 2);
    return ill_[node][step - 1] ? turn >= kRecovers : turn < kFallsIll;
  }
  double slowness(Step step, WorkerId worker, uint64_t sample) const {
    if (cluster_.regimes) return is_ill(step, worker / kNode, sample) ? std::log(3.0) : 0.0;
    if (worker >= kSlow) return 0.0;
    const double done = (static_cast<double>(step) - kFull) / (kSteps - kJudged - kFull);
    const double share = std::clamp(done, 0.0, 1.0);
    return (1.0 - share) * std::log(cluster_.from) + share * std::log(cluster_.to);
  }

  const Cluster& cluster_;
  const uint64_t seed_;
  std::vector<std::vector<bool>> ill_;  // by node and step
};

// A step of a recording; with its true distribution if the step is judged.
struct Recorded {
  std::vector<double> times;
  StepClose close;
  Forecast truth;
  Forecast sorted;  // the same
  std::vector<WorkerId> mostly_cut;
};

inline void sample_truth(const Run& run, Step step, uint64_t first, Forecast& out) {
  for (uint32_t k = 0; k < out.samples; ++k) {
    for (WorkerId worker = 0; worker < kCluster; ++worker) {
      out.row(k)[worker] = static_cast<float>(run.time(step, worker, first + k));
    }
  }
}

inline std::vector<Recorded> record(const Run& run) {
  std::vector<Recorded> steps(kSteps);
  for (Step step = 0; step < kSteps; ++step) {
    Recorded& now = steps[step];
    for (WorkerId worker = 0; worker < kCluster; ++worker) {
      now.times.push_back(run.time(step, worker, 0));
    }
    std::vector<double> sorted = now.times;
    std::sort(sorted.begin(), sorted.end());
    const uint32_t cutoff = step < kFull ? kCluster : kCutoff;
    now.close = {cutoff, sorted[cutoff - 1]};
    if (step < kSteps - kJudged) continue;
    now.truth.resize(kTruth, kCluster);
    sample_truth(run, step, 1, now.truth);
    now.sorted = now.truth;
    sort_rows(now.sorted);
    for (WorkerId worker = 0; worker < kCluster; ++worker) {
      const auto cut = std::count_if(&steps[step - kJudged], &now, [&](const Recorded& before) {
        return before.times[worker] > before.close.elapsed;
      });
      if (cut > ptrdiff_t{kJudged / 2}) now.mostly_cut.push_back(worker);
    }
  }
  return steps;
}

}  // namespace drover
