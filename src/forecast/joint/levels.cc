#include "forecast/joint/levels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace drover {
namespace {

constexpr double kErrorFading = 0.97;
constexpr float kEwmaWeight = 0.3F;
// One wild run-time says little about which rule is right for all.
constexpr double kLargestError = 2.0;
// Workers whose periods are looked at.
constexpr size_t kPeriodWorkers = 64;
constexpr double kPeriodFading = 0.98;
// A period repeats at its multiples: a longer one must be clearly better.
constexpr double kShorterPeriod = 0.9;
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

float middle_of(std::span<float> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2.0F;
}

}  // namespace

void Levels::grow(size_t workers) {
  if (workers > tracks_.size()) tracks_.resize(workers);
}

void Levels::judge(std::span<const float> bounds, std::span<const Seen> seen) {
  std::array<double, kRules> sums{};
  double count = 0.0;
  for (WorkerId worker = 0; worker < seen.size(); ++worker) {
    if (seen[worker] == Seen::kAbsent || !knows(worker)) continue;
    count += 1.0;
    for (size_t rule = 0; rule < kRules; ++rule) {
      const double off = static_cast<double>(bounds[worker] - tracks_[worker].level[rule]);
      const double error = seen[worker] == Seen::kArrived ? std::abs(off) : std::max(0.0, off);
      sums[rule] += std::min(error, kLargestError);
    }
  }
  if (count == 0.0) return;
  weight_ = kErrorFading * weight_ + 1.0;
  for (size_t rule = 0; rule < kRules; ++rule)
    errors_[rule] += (sums[rule] / count - errors_[rule]) / weight_;
  size_t best = 0;
  for (size_t rule = 1; rule < kRules; ++rule) {
    if (errors_[rule] < errors_[best]) best = rule;
  }
  best_ = static_cast<Rule>(best);
}

void Levels::judge_periods(std::span<const float> times, std::span<const Seen> seen) {
  const size_t stride = std::max<size_t>(1, times.size() / kPeriodWorkers);
  uint32_t best = 0;
  for (uint32_t period = 2; period <= kLongestPeriod && 3 * period <= learned_; ++period) {
    const std::vector<float>& then = past_[(learned_ - period) % past_.size()];
    double sum = 0.0;
    double count = 0.0;
    for (size_t worker = 0; worker < std::min(times.size(), then.size()); worker += stride) {
      if (seen[worker] != Seen::kArrived || std::isnan(then[worker])) continue;
      sum += std::min(kLargestError, static_cast<double>(std::abs(times[worker] - then[worker])));
      count += 1.0;
    }
    if (count > 0.0) {
      period_weights_[period] = kPeriodFading * period_weights_[period] + 1.0;
      period_errors_[period] += (sum / count - period_errors_[period]) / period_weights_[period];
    }
    if (period_weights_[period] < 8.0) continue;
    if (best == 0 || period_errors_[period] < kShorterPeriod * period_errors_[best]) best = period;
  }
  period_ = best;
}

// The median of the last three values a period apart; without a period, the last value.
void Levels::find_period_levels() {
  for (WorkerId worker = 0; worker < tracks_.size(); ++worker) {
    Track& track = tracks_[worker];
    track.level[kPeriod] = track.level[kLast];
    if (period_ == 0) continue;
    std::array<float, 3> values{};
    size_t count = 0;
    for (uint32_t turn = 1; turn <= 3; ++turn) {
      const uint64_t back = uint64_t{turn} * period_;
      if (back > learned_ || back > past_.size()) break;
      const std::vector<float>& then = past_[(learned_ - back) % past_.size()];
      if (worker < then.size() && !std::isnan(then[worker])) values[count++] = then[worker];
    }
    if (count > 0) track.level[kPeriod] = middle_of(std::span(values).first(count));
  }
}

void Levels::refresh(Track& track) const {
  std::array<float, kWindow> newest{};  // the newest first
  float ewma = track.base;
  for (uint32_t i = 0; i < track.count; ++i) {
    const uint32_t at = (track.next + kWindow - track.count + i) % kWindow;
    ewma = i == 0 && track.count < kWindow ? track.times[at]
                                           : ewma + kEwmaWeight * (track.times[at] - ewma);
    newest[track.count - 1 - i] = track.times[at];
  }
  track.level[kLast] = newest[0];
  track.level[kEwma] = ewma;
  const auto median_of = [&](uint32_t window) {
    return middle_of(std::span(newest).first(std::min(window, track.count)));
  };
  track.level[kMedian5] = median_of(5);
  track.level[kMedian15] = median_of(15);
  track.level[kMedian45] = median_of(kWindow);
}

void Levels::learn(Step step, std::span<const float> times, std::span<const Seen> seen) {
  grow(times.size());
  if (past_.empty()) past_.resize(3 * kLongestPeriod + 1);
  judge_periods(times, seen);
  std::vector<float>& row = past_[learned_ % past_.size()];
  row.assign(times.begin(), times.end());
  for (WorkerId worker = 0; worker < times.size(); ++worker) {
    if (seen[worker] == Seen::kAbsent) {
      row[worker] = kNone;
      continue;
    }
    Track& track = tracks_[worker];
    if (track.count == kWindow) {
      track.base += kEwmaWeight * (track.times[track.next] - track.base);
    } else {
      if (track.count == 0) track.base = times[worker];
      ++track.count;
    }
    track.times[track.next] = times[worker];
    track.steps[track.next] = static_cast<uint32_t>(step);
    track.next = (track.next + 1) % kWindow;
    refresh(track);
  }
  ++learned_;
  find_period_levels();
}

void Levels::correct(Step step, WorkerId worker, float time) {
  if (worker >= tracks_.size()) return;
  Track& track = tracks_[worker];
  for (uint32_t i = 0; i < track.count; ++i) {
    const uint32_t at = (track.next + kWindow - 1 - i) % kWindow;
    if (track.steps[at] != static_cast<uint32_t>(step)) continue;
    track.times[at] = time;
    // Far sooner than it was taken for: what was known of it is of another time.
    const double typical = std::max(0.05, errors_[best_]);
    if (static_cast<double>(track.level[best_] - time) > 4.0 * typical) {
      track.times[0] = time;
      track.steps[0] = static_cast<uint32_t>(step);
      track.count = 1;
      track.next = 1;
      track.base = time;
      refresh(track);
      track.level[kPeriod] = time;
      return;
    }
    const float period_level = track.level[kPeriod];
    refresh(track);
    track.level[kPeriod] = period_level;
    return;
  }
}

}  // namespace drover
