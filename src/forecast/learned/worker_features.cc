#include "forecast/learned/worker_features.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace drover {
namespace {

constexpr float kFastWeight = 0.7F;
constexpr float kMidWeight = 0.3F;
constexpr float kSlowWeight = 0.05F;
constexpr float kSpreadFading = 0.1F;
constexpr float kCutShortFading = 0.2F;
// Weight of the pooled spread in a worker's spread, in distances.
constexpr float kSpreadsOfOthers = 4.0F;
// Smaller distances on the log scale are clock noise and rounding.
constexpr float kLeastSpread = 1e-4F;
constexpr uint32_t kMostMissed = 50;

// The first few run-times have equal weights, so that the first one does not dominate.
float weight(float steady, uint32_t count) {
  return std::max(steady, 1.0F / static_cast<float>(count));
}

}  // namespace

float squash(float value) { return std::copysign(std::log(1.0F + std::abs(value)), value); }

float WorkerFeatures::scale_of(const Levels& levels) const {
  const float own = std::min(2.0F / kSpreadFading, static_cast<float>(levels.measured));
  return std::max(kLeastSpread, (own * levels.spread + kSpreadsOfOthers * pooled_spread_) /
                                    (own + kSpreadsOfOthers));
}

void WorkerFeatures::advance(Levels& levels, const PastTime& time) const {
  if (time.known == Known::kNothing) return;
  const bool cut_short = time.known == Known::kLonger;
  ++levels.updates;
  levels.steps_missed = cut_short ? levels.steps_missed + 1 : 0;
  levels.cut_short +=
      weight(kCutShortFading, levels.updates) * ((cut_short ? 1.0F : 0.0F) - levels.cut_short);
  if (levels.updates == 1) {
    levels.last = levels.prev = levels.fast = levels.mid = levels.slow = time.log_time;
    return;
  }
  const float distance = time.log_time - levels.mid;
  levels.surprise = squash(distance / scale_of(levels));
  levels.prev = levels.last;
  levels.last = time.log_time;
  // A bound below a level has no information, so the draw must not move the level, which would
  // drift without measurements.
  const auto follow = [&](float& level, float steady) {
    if (cut_short && time.bound <= level) return;
    level += weight(steady, levels.updates) * (time.log_time - level);
  };
  follow(levels.fast, kFastWeight);
  follow(levels.mid, kMidWeight);
  follow(levels.slow, kSlowWeight);
  if (cut_short) return;  // draws depend on the spread, so they must not change it
  ++levels.measured;
  levels.spread += weight(kSpreadFading, levels.measured) * (std::abs(distance) - levels.spread);
}

void WorkerFeatures::learn(Step step, std::span<const PastTime> row) {
  DROVER_CHECK(row.size() >= workers_.size());
  workers_.resize(row.size());
  ++steps_;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i].known == Known::kNothing) continue;
    Worker& worker = workers_[i];
    if (worker.count == kRecent) {
      advance(worker.base, worker.recent[worker.begin].time);
      worker.begin = (worker.begin + 1) % kRecent;
      --worker.count;
    }
    worker.recent[(worker.begin + worker.count++) % kRecent] = {step, row[i]};
    advance(worker.now, row[i]);
  }
  summarise(row);
}

void WorkerFeatures::summarise(std::span<const PastTime> row) {
  scratch_.clear();
  float spreads = 0.0F;
  float spread_count = 0.0F;
  float surprises = 0.0F;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i].known == Known::kNothing) continue;
    const Levels& levels = workers_[i].now;
    scratch_.push_back(levels.mid);
    surprises += levels.surprise;
    if (levels.measured == 0) continue;
    spreads += levels.spread;
    spread_count += 1.0F;
  }
  if (scratch_.empty()) return;
  surprise_ = surprises / static_cast<float>(scratch_.size());
  if (spread_count > 0.0F) pooled_spread_ = spreads / spread_count;
  const auto middle = scratch_.begin() + static_cast<ptrdiff_t>(scratch_.size() / 2);
  std::nth_element(scratch_.begin(), middle, scratch_.end());
  center_ = *middle;
}

void WorkerFeatures::correct(Step step, WorkerId id, float log_time) {
  if (id >= workers_.size()) return;
  Worker& worker = workers_[id];
  for (uint32_t i = 0; i < worker.count; ++i) {
    Recent& late = worker.recent[(worker.begin + i) % kRecent];
    if (late.step != step || late.time.known != Known::kLonger) continue;
    const float truth = std::max(late.time.bound, log_time);
    late.time = {truth, truth, Known::kArrived};
    worker.now = worker.base;
    for (uint32_t k = 0; k < worker.count; ++k) {
      advance(worker.now, worker.recent[(worker.begin + k) % kRecent].time);
    }
    return;
  }
}

WorkerView WorkerFeatures::view(WorkerId id) const {
  WorkerView view;
  const bool unknown = id >= workers_.size() || workers_[id].now.updates == 0;
  if (unknown) {
    view.anchors.fill(center_);
    view.scale = std::max(kLeastSpread, pooled_spread_);
    view.features[8] = 1.0F;
    view.features[11] = 1.0F;
  } else {
    const Levels& levels = workers_[id].now;
    view.anchors = {levels.last, levels.prev, levels.fast, levels.mid, levels.slow, center_};
    view.scale = scale_of(levels);
    const auto apart = [&](float level) { return squash((level - levels.mid) / view.scale); };
    view.features[0] = apart(levels.last);
    view.features[1] = apart(levels.prev);
    view.features[2] = apart(levels.fast);
    view.features[3] = apart(levels.slow);
    view.features[4] = -apart(center_);
    view.features[5] =
        std::clamp(std::log(view.scale / std::max(kLeastSpread, pooled_spread_)), -4.0F, 4.0F);
    view.features[6] = levels.cut_short;
    view.features[7] = levels.steps_missed > 0 ? 1.0F : 0.0F;
    view.features[8] = static_cast<float>(std::min(levels.steps_missed, kMostMissed)) / kMostMissed;
    view.features[11] = 1.0F / static_cast<float>(levels.updates);
  }
  // Features of the cluster: the mean surprise in the last step, and the pooled spread.
  view.features[9] = surprise_;
  view.features[10] = 0.25F * std::log(std::max(kLeastSpread, pooled_spread_));
  return view;
}

}  // namespace drover
