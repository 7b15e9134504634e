// NormGuard: which gradients of one block are too long to be believed, by what is usual there.
//
// The lengths (norms) of the last gradients of each worker are remembered, those of outliers too.
// A worker has one vote, however often it comes: the median of its own lengths. The usual length is
// the median of the votes, and the usual deviation, as a ratio, the median over workers of the
// median of how far each one's lengths are from the usual one. A length is out of line if it is
// more than `factor` deviations above the usual one, on a scale of ratios:
//
//   bound = usual * deviation ^ (factor * 1.4826)
//
// (1.4826 makes a median deviation a standard one, where logarithms of lengths are normal.)
//
// So fewer than half of the workers can move neither beyond what the others have: a liar's vote is
// one of n, whatever it says. When everybody's gradients get longer at once, all votes follow as
// soon as the new lengths are more than half of what is remembered: nobody is locked out for long.
// Short gradients do no harm, and zeros say nothing.
//
// A gradient weighs as much as it says to have samples, which would be another way to outweigh the
// others: the usual number is the median over workers of what each said last, and more than
// kSamplesMost times that is out of line.
//
// What came in a step counts when the step closes, and a worker's lengths are kept apart, so that
// nothing depends on the order of arrival.
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
  // Lengths of each worker that are remembered.
  static constexpr size_t kRemembered = 8;
  // Of which there are fewer, a worker has no vote; of fewer voters, nobody is out of line.
  static constexpr size_t kLengthsMin = 2;
  static constexpr size_t kVotersMin = 3;
  // Who has not come for so many steps has no vote: lengths change as training goes on.
  static constexpr uint32_t kStepsFresh = 64;
  // Deviations are taken to be at least so large, for lengths that were all but equal may well
  // change; and at most so large, for of few lengths even the median may be far off.
  static constexpr double kDeviationMin = 1.145;  // a standard deviation of about a fifth
  static constexpr double kDeviationMax = 1.58;  // of about two thirds: a bound of 30 with factor 5

  // So many times the usual number of samples; a worker that is quick may well have some more.
  static constexpr double kSamplesMost = 4.0;

  NormGuard(uint32_t workers, double factor) : factor_(factor), workers_(workers) {}

  struct Bound {
    double typical = 0.0;  // length; 0: not known
    double most = std::numeric_limits<double>::infinity();
    uint32_t typical_samples = 0;
    double most_samples = std::numeric_limits<double>::infinity();
  };
  const Bound& bound() const { return bound_; }

  // What a worker has sent in the step that is open, be it used or not: the square of its length,
  // and its samples. REQUIRES: finite.
  void note(WorkerId worker, double squares, uint32_t samples);
  // The step has closed: what was noted counts. Who is not a member has no vote.
  void learn(const Membership& members);
  // Another life of this worker begins.
  void forget(WorkerId worker);

  // All that is remembered, to go on from elsewhere: so many numbers of each worker.
  static constexpr size_t kSavedOfEach = kRemembered + 4;
  std::vector<float> save() const;
  void restore(std::span<const float> saved, const Membership& members);

 private:
  struct History {
    std::array<float, kRemembered> lengths{};  // the last, in a ring
    uint32_t count = 0;                        // of those; at most kRemembered
    uint32_t next = 0;                         // to be overwritten
    uint32_t silent = 0;                       // steps since the last came
    float samples = 0.0F;                      // of the last
    float noted = 0.0F;                        // in the open step; 0: nothing
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
