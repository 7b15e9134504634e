#include "sim/guard_checker.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace drover {
namespace {

// With the deviation between 1.145 and 1.58 and a factor of 5 the bound on a norm is between these
// multiples of the typical norm: deviation ^ (5 * 1.4826), rounded outwards.
constexpr double kBoundLeast = 2.7;
constexpr double kBoundMost = 30.0;
constexpr uint32_t kVotersMin = 3;
constexpr size_t kLengthsMin = 2;
// A worker that has sent no gradient for more steps than this may have no vote.
constexpr Step kRecent = 50;

// Relative tolerance for numbers above one, absolute below.
constexpr double kTolerance = 1e-4;

}  // namespace

bool is_in(double number, const Range& range) {
  const double slack = kTolerance * std::max(1.0, std::abs(number));
  return range.low - slack <= number && number <= range.high + slack;
}

void GuardChecker::note(BlockId block, Step step, WorkerId worker, double value) {
  if (std::isfinite(value) && value != 0.0) lengths_[{block, worker}][step] = std::abs(value);
}

void GuardChecker::restart(Version version) {
  for (auto& [key, lengths] : lengths_) lengths.erase(lengths.lower_bound(version), lengths.end());
}

GuardChecker::Seen GuardChecker::seen_before(BlockId block, Step step) const {
  constexpr double kMost = std::numeric_limits<double>::infinity();
  Seen seen{.all = {kMost, 0.0}, .honest = {kMost, 0.0}};
  for (const auto& [key, lengths] : lengths_) {
    if (key.first != block) continue;
    const auto end = lengths.lower_bound(step);
    const auto count = static_cast<size_t>(std::distance(lengths.begin(), end));
    const bool honest = !settings_.byzantine_workers.contains(key.second);
    for (auto each = lengths.begin(); each != end; ++each) {
      for (Range* range : {&seen.all, honest ? &seen.honest : &seen.all}) {
        range->low = std::min(range->low, each->second);
        range->high = std::max(range->high, each->second);
      }
    }
    if (count < kLengthsMin) continue;
    ++seen.voters;
    const bool recent = std::prev(end)->first + kRecent > step;
    if (honest && recent && !lost_.contains(key.second)) ++seen.steady;
  }
  return seen;
}

bool GuardChecker::may_be_outlier(BlockId block, Step step, double value) const {
  if (settings_.rule == GuardRule::kOff) return false;
  const Seen seen = seen_before(block, step);
  return seen.voters >= kVotersMin && std::abs(value) > kBoundLeast * seen.all.low;
}

// Where a majority of all possible voters is honest and votes, the typical norm is at most one of
// theirs.
bool GuardChecker::must_be_outlier(BlockId block, Step step, double value) const {
  if (settings_.rule == GuardRule::kOff) return false;
  const Seen seen = seen_before(block, step);
  return seen.steady >= kVotersMin && 2 * seen.steady > settings_.workers &&
         std::abs(value) > kBoundMost * seen.honest.high;
}

Range GuardChecker::counted(BlockId block, Step step, double value) const {
  if (settings_.rule != GuardRule::kNorm || !may_be_outlier(block, step, value))
    return {value, value};
  const Seen seen = seen_before(block, step);
  const double least = std::min(seen.all.low, std::abs(value));
  const double most = must_be_outlier(block, step, value) ? seen.honest.high : std::abs(value);
  return value > 0.0 ? Range{least, most} : Range{-most, -least};
}

}  // namespace drover
