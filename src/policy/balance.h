// Balancer: assigns mini-batches in proportion to speed, so that unequal workers finish together.
//
// The model: worker i takes a + b_i s for a share s of the default mini-batch. All workers finish
// at the same time T if s_i = (T - a) / b_i. The shares of n workers sum to n, within bounds, so
// that the number of samples per step does not change.
//
// b_i follows the observed run-times: an exponential mean of log((x - a) / s). Four memory lengths
// run in parallel; the one that recently predicted best is used. A censored run-time counts only if
// its bound is above the mean.
//
// a, the part of a gradient's cost that does not depend on its size, is the same for all workers.
// It cannot be estimated from balanced shares, because their run-times are equal. So shares are
// perturbed at random in the warm-up, up and down in turns. With z = (s - s_planned) / s_planned
// such a move, and y the relative deviation of the run-time from that expected for s_planned,
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
  double least = 0.2;  // minimum share of a default mini-batch
  double most = 3.0;   // maximum share of a default mini-batch
  Step warmup = 20;    // first steps, with equal shares except for the moves
  uint64_t seed = 1;
};

class Balancer {
 public:
  // REQUIRES: 0 < least <= 1 <= most.
  explicit Balancer(const BalanceSettings& settings);

  // Decides the shares of `step` for these workers. REQUIRES: called once per step, in order.
  void plan(Step step, std::span<const WorkerId> alive);
  // The same in whole samples, with `batch` samples in a default mini-batch. share() then returns
  // the exact shares. ENSURES: each worker gets at least one sample, in the order of `alive`; the
  // sum is batch * alive.size().
  std::vector<uint32_t> deal(Step step, std::span<const WorkerId> alive, uint32_t batch);
  // The share of a worker in a step. It is 1 for a worker that was not in `alive`, and for all
  // workers of a step that was not planned or is too old.
  double share(Step step, WorkerId worker) const;
  // The estimate of a, the part of a run-time that does not depend on the share.
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
  double shortest_ = 0.0;  // run-time of the last step: an upper bound of fixed()
  std::vector<double> targets_;
};

// Computes shares s_i = c / cost_i within the bounds, with c such that they add up to `sum`.
// REQUIRES: costs are positive; least * n <= sum <= most * n.
void balanced_shares(std::span<const double> costs, double least, double most, double sum,
                     std::vector<double>& shares);

// Whole numbers of samples: about `batch` times the shares, each at least 1, with sum `total`.
// REQUIRES: total >= the number of shares.
std::vector<uint32_t> whole_samples(std::span<const double> shares, uint32_t batch, uint64_t total);

}  // namespace drover
