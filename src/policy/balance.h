// Balancer: mini-batches in proportion to speed, so that unequal workers finish together.
//
// The time of worker i with a share s of the usual mini-batch is taken as a + b_i s. Everybody is
// done at the same moment T when s_i = (T - a) / b_i; the shares of n workers sum to n, within
// bounds, so that a step has as many samples as ever.
//
// b_i follows the run-times that were seen: an exponential mean of log((x - a) / s), whose memory
// is the one of four that has foretold best of late. Of a worker that was cut short only a bound is
// known: it counts where it is above the mean.
//
// a, what a gradient costs whatever its size, is the same for all. Shares that follow run-times
// cannot tell it (whoever is slow is given less, so the times stay equal), so they are moved a
// little at random, up and down in turns: with z = (s - s_planned) / s_planned such a move and y
// the relative deviation of the run-time from what was expected of s_planned,
//
//   E[y | z] = (1 - a / x) z    =>    a = sum z (z - y) / sum (z^2 / x)
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/step_times.h"

namespace drover {

struct BalanceSettings {
  double least = 0.2;  // share of a usual mini-batch that everybody gets
  double most = 3.0;   // and that nobody gets more than
  Step warmup = 20;    // steps in which shares are equal but for the moves
  uint64_t seed = 1;
};

class Balancer {
 public:
  // REQUIRES: 0 < least <= 1 <= most.
  explicit Balancer(const BalanceSettings& settings);

  // Decides the shares of `step`, in which these are expected to take part, and keeps them. Call
  // once for each step, in order.
  void plan(Step step, std::span<const WorkerId> alive);
  // The same in whole samples, with `batch` in a usual mini-batch: share() is what they come to.
  // ENSURES: each worker gets at least one, in the order of `alive`; the sum is that of as many
  // usual mini-batches.
  std::vector<uint32_t> deal(Step step, std::span<const WorkerId> alive, uint32_t batch);
  // The shares that a step was given, by worker; 1 for whoever was not expected. All 1 if it was
  // not planned, or so long ago that it is forgotten.
  double share(Step step, WorkerId worker) const;
  // What a gradient costs whatever its size.
  double fixed() const;

  void learn(const StepTimes& times);
  void learn_late(Step step, WorkerId worker, double seconds);

 private:
  static constexpr size_t kMemories = 4;
  struct Speed {
    std::array<double, kMemories> level{};  // of log b, by memory
    uint64_t seen = 0;
  };
  struct Planned {
    Step step = 0;
    std::vector<double> shares;   // by worker
    std::vector<double> planned;  // without the moves
  };
  const Planned* find(Step step) const;
  double log_speed(WorkerId worker) const;
  void observe(const Planned& planned, WorkerId worker, double seconds);
  void bound(const Planned& planned, WorkerId worker, double seconds);
  double move(Step step, size_t place, size_t count) const;

  const BalanceSettings settings_;
  std::vector<Speed> speeds_;  // by worker
  std::deque<Planned> planned_;
  std::array<double, kMemories> errors_{};  // squared, fading
  size_t best_ = 0;                         // memory
  // Fading sums of the formula above.
  double moved_ = 0.0;
  double followed_ = 0.0;
  double moved_per_time_ = 0.0;
  double shortest_ = 0.0;  // run-time of the last step: no more than that can be fixed
  std::vector<double> targets_;
};

// Shares s_i = c / cost_i with `sum` in all, each within the bounds; c follows. REQUIRES: costs are
// positive; least * n <= sum <= most * n.
void balanced_shares(std::span<const double> costs, double least, double most, double sum,
                     std::vector<double>& shares);

// Whole numbers of samples: `batch` times the shares, each at least 1, `total` in all.
// REQUIRES: total >= the number of shares.
std::vector<uint32_t> whole_samples(std::span<const double> shares, uint32_t batch, uint64_t total);

}  // namespace drover
