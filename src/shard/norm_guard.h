// NormGuard: a bound on the norms of one block's gradients, against faulty (Byzantine) workers.
//
// The guard remembers the norms of the last gradients of each worker, including outliers. Each
// worker has one vote, however often it pushes: the median of its own norms. The typical norm is
// the median of the votes. The typical deviation is a ratio: for each worker the median distance of
// its norms from the typical norm, and of these the median over workers. A norm is too large if it
// is more than `factor` deviations above the typical norm, on a logarithmic scale:
//
//   bound = typical * deviation ^ (factor * 1.4826)
//
// (1.4826 turns a median deviation into a standard deviation, if norms are log-normal.)
//
// So fewer than half of the workers cannot move the bound beyond what the other workers have: a
// Byzantine worker has one of n votes. When the gradients of all workers grow at once, all votes
// follow as soon as the new norms are more than half of the remembered ones, so that workers are
// not refused for long. Small gradients do no harm, and zero gradients have no vote.
//
// A gradient's weight is its reported number of samples, which a faulty worker could exaggerate.
// The typical number is the median over workers of each one's last number. More than kSamplesMost
// times that is too much.
//
// The norms of a step count from when it closes, and each worker's norms are kept separately, so
// that nothing depends on the order of arrival.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/membership.h"

namespace drover {

class NormGuard {
 public:
  // How many norms of each worker are remembered.
  static constexpr size_t kRemembered = 8;
  // A worker with fewer norms has no vote.
  static constexpr size_t kNormsMin = 2;
  // With fewer voters there is no bound.
  static constexpr size_t kVotersMin = 3;
  // A worker without a gradient for this many steps has no vote, since norms change during
  // training.
  static constexpr uint32_t kStepsFresh = 64;
  // Limits on the deviation. Norms that were almost equal may change, and the median of few norms
  // may be far off.
  static constexpr double kDeviationMin = 1.145;  // a standard deviation of about a fifth
  static constexpr double kDeviationMax = 1.58;   // about two thirds; with factor 5, a bound of 30

  // A multiple of the typical number of samples. Fast workers may have more samples than others.
  static constexpr double kSamplesMost = 4.0;

  NormGuard(uint32_t workers, double factor) : factor_(factor), workers_(workers) {}

  struct Bound {
    double typical = 0.0;  // the typical norm; 0: unknown
    double most = std::numeric_limits<double>::infinity();
    uint32_t typical_samples = 0;
    double most_samples = std::numeric_limits<double>::infinity();
  };
  const Bound& bound() const { return bound_; }

  // Notes a gradient of the open step, used or not: its squared norm and its samples.
  // REQUIRES: `squares` is finite.
  void note(WorkerId worker, double squares, uint32_t samples);
  // The step has closed: noted gradients now count. Only members have a vote.
  void learn(const Membership& members);
  // A new incarnation of this worker begins.
  void forget(WorkerId worker);

  // The whole state, as this many numbers for each worker.
  static constexpr size_t kSavedOfEach = kRemembered + 4;
  std::vector<float> save() const;
  void restore(std::span<const float> saved, const Membership& members);

 private:
  struct History {
    std::array<float, kRemembered> norms{};  // the last ones, a ring buffer
    uint32_t count = 0;                      // of norms; at most kRemembered
    uint32_t next = 0;                       // the index to overwrite next
    uint32_t silent = 0;                     // steps since the last gradient
    float samples = 0.0F;                    // of the last gradient
    float noted = 0.0F;                      // the norm in the open step; 0: none
    float noted_samples = 0.0F;
  };
  void find_bound(const Membership& members);

  const double factor_;
  std::vector<History> workers_;
  Bound bound_;
  std::vector<WorkerId> voters_;
  std::vector<float> scratch_;
};

}  // namespace drover
