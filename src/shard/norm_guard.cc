#include "shard/norm_guard.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "wire/limits.h"

namespace drover {
namespace {

constexpr double kStandardPerMedian = 1.4826;

// The lower of two middle values: with few workers the typical norm is rather too small.
float lower_median(std::span<float> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The upper of two middle values: the deviation is rather too large, that is, too tolerant.
float upper_median(std::span<float> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void NormGuard::note(WorkerId worker, double squares, uint32_t samples) {
  DROVER_CHECK(std::isfinite(squares));
  const double norm = std::sqrt(squares);
  History& each = workers_[worker];
  each.noted =
      static_cast<float>(std::min(norm, static_cast<double>(std::numeric_limits<float>::max())));
  each.noted_samples = static_cast<float>(samples);
}

void NormGuard::learn(const Membership& members) {
  for (History& each : workers_) {
    if (each.silent < kStepsFresh) ++each.silent;
    if (!(each.noted > 0.0F)) continue;
    each.norms[each.next] = each.noted;
    each.next = (each.next + 1) % kRemembered;
    each.count = std::min<uint32_t>(each.count + 1, kRemembered);
    each.samples = each.noted_samples;
    each.silent = 0;
    each.noted = 0.0F;
  }
  find_bound(members);
}

void NormGuard::forget(WorkerId worker) { workers_[worker] = {}; }

void NormGuard::find_bound(const Membership& members) {
  bound_ = {};
  voters_.clear();
  scratch_.clear();
  for (WorkerId worker = 0; worker < workers_.size(); ++worker) {
    const History& each = workers_[worker];
    if (each.count < kNormsMin || each.silent >= kStepsFresh || !members.has(worker)) continue;
    voters_.push_back(worker);
    std::array<float, kRemembered> norms = each.norms;
    scratch_.push_back(lower_median(std::span(norms).first(each.count)));
  }
  if (voters_.size() < kVotersMin) return;
  const float typical = lower_median(scratch_);
  scratch_.clear();
  for (const WorkerId worker : voters_) {
    const History& each = workers_[worker];
    std::array<float, kRemembered> ratios{};
    for (size_t i = 0; i < each.count; ++i)
      ratios[i] = std::max(each.norms[i] / typical, typical / each.norms[i]);
    scratch_.push_back(upper_median(std::span(ratios).first(each.count)));
  }
  const double deviation =
      std::clamp(static_cast<double>(upper_median(scratch_)), kDeviationMin, kDeviationMax);
  scratch_.clear();
  for (const WorkerId worker : voters_) scratch_.push_back(workers_[worker].samples);
  bound_.typical_samples = static_cast<uint32_t>(lower_median(scratch_));
  if (bound_.typical_samples > 0) bound_.most_samples = kSamplesMost * bound_.typical_samples;
  bound_.typical = static_cast<double>(typical);
  bound_.most = bound_.typical * std::pow(deviation, factor_ * kStandardPerMedian);
}

// Saved as floats, like everything in a checkpoint.
std::vector<float> NormGuard::save() const {
  std::vector<float> saved;
  saved.reserve(workers_.size() * kSavedOfEach);
  for (const History& each : workers_) {
    saved.insert(saved.end(), each.norms.begin(), each.norms.end());
    saved.push_back(static_cast<float>(each.count));
    saved.push_back(static_cast<float>(each.next));
    saved.push_back(static_cast<float>(each.silent));
    saved.push_back(each.samples);
  }
  return saved;
}

// Files are not trusted: a worker with invalid numbers begins without a history.
void NormGuard::restore(std::span<const float> saved, const Membership& members) {
  const size_t known = std::min(workers_.size(), saved.size() / kSavedOfEach);
  for (size_t worker = 0; worker < known; ++worker) {
    const auto from = saved.subspan(worker * kSavedOfEach, kSavedOfEach);
    const auto is_length = [](float length) { return length >= 0.0F && std::isfinite(length); };
    const bool makes_sense =
        std::all_of(from.begin(), from.end(), is_length) && from[kRemembered] <= kRemembered &&
        from[kRemembered + 1] < kRemembered && from[kRemembered + 2] <= kStepsFresh &&
        from[kRemembered + 3] <= kSamplesMax;
    const auto used = from.first(makes_sense ? static_cast<size_t>(from[kRemembered]) : 0);
    if (!makes_sense || std::count(used.begin(), used.end(), 0.0F) > 0) continue;
    History& each = workers_[worker];
    std::copy_n(from.begin(), kRemembered, each.norms.begin());
    each.count = static_cast<uint32_t>(from[kRemembered]);
    each.next = static_cast<uint32_t>(from[kRemembered + 1]);
    each.silent = static_cast<uint32_t>(from[kRemembered + 2]);
    each.samples = from[kRemembered + 3];
  }
  find_bound(members);
}

}  // namespace drover
