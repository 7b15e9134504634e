#include "policy/joint_choice.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "policy/policy.h"

namespace drover {
namespace {

// Limits are tried where run-times are dense: some of all samples, evenly by rank, then again
// around the best of these.
constexpr size_t kPooled = 2048;
constexpr size_t kTried = 48;
// If even the latest sample of the cutoff's arrival has passed by this factor, the forecast is
// wrong, and there is no reason to wait longer.
constexpr double kSurprise = 1.2;
// The step waits for this share of the expected gradients in any case: if nearly all workers are
// late, a limit would leave next to none.
constexpr double kAtLeast = 0.5;

uint32_t arrivals_by(std::span<const float> row, double limit) {
  const auto end = std::upper_bound(row.begin(), row.end(), limit,
                                    [](double t, float x) { return t < static_cast<double>(x); });
  return static_cast<uint32_t>(end - row.begin());
}

}  // namespace

void JointSearch::pool(const Forecast& times) {
  pooled_.clear();
  const size_t stride = std::max<size_t>(1, times.times.size() / kPooled);
  for (size_t i = stride / 2; i < times.times.size(); i += stride)
    pooled_.push_back(times.times[i]);
  std::sort(pooled_.begin(), pooled_.end());
}

void JointSearch::try_limits(const Forecast& times, size_t begin, size_t end) {
  const size_t count = std::min(kTried, end - begin);
  ranks_.resize(count);
  candidates_.resize(count);
  for (size_t j = 0; j < count; ++j) {
    ranks_[j] = begin + (j + 1) * (end - begin) / count - 1;  // the last one is among them
    candidates_[j] = static_cast<double>(pooled_[ranks_[j]]);
  }
  in_time_.resize(times.samples * count);
  for (uint32_t k = 0; k < times.samples; ++k) {
    const std::span<const float> row = times.row(k);
    uint32_t here = 0;
    for (size_t j = 0; j < count; ++j) {
      here += arrivals_by(row.subspan(here), candidates_[j]);
      in_time_[k * count + j] = here;
    }
  }
}

void JointSearch::find_limit(const JointSamples& samples, const JointTerms& terms) {
  const size_t count = candidates_.size();
  gradients_.assign(count, 0.0);
  times_.assign(count, 0.0);
  for (uint32_t k = 0; k < samples.times.samples; ++k) {
    const std::span<const float> row = samples.times.row(k);
    const auto enough = static_cast<double>(row[cutoff_ - 1]);
    const double enough_progress = terms.progress(samples.gradients_of(k, cutoff_));
    const double weight = samples.weights[k];
    for (size_t j = 0; j < count; ++j) {
      if (enough <= candidates_[j]) {
        gradients_[j] += weight * enough_progress;
        times_[j] += weight * enough;
        continue;
      }
      const uint32_t here = in_time_[k * count + j];  // a step has one gradient at least
      gradients_[j] += weight * terms.progress(samples.gradients_of(k, std::max(1U, here)));
      times_[j] += weight * (here > 0 ? candidates_[j] : static_cast<double>(row.front()));
    }
  }
  limit_ = 0;
  rate_ = 0.0;
  for (size_t j = 0; j < count; ++j) {
    const double rate = gradients_[j] / (terms.overhead + times_[j]);
    if (rate <= rate_) continue;
    rate_ = rate;
    limit_ = j;
  }
}

void JointSearch::find_cutoff(const JointSamples& samples, const JointTerms& terms, bool limited) {
  const uint32_t workers = samples.times.workers;
  gradients_.assign(workers, 0.0);
  times_.assign(workers, 0.0);
  cut_gradients_.assign(workers + size_t{1}, 0.0);
  cut_times_.assign(workers + size_t{1}, 0.0);
  for (uint32_t k = 0; k < samples.times.samples; ++k) {
    const float* const row = samples.times.row(k).data();
    const double weight = samples.weights[k];
    const uint32_t here = limited ? in_time_[k * candidates_.size() + limit_] : workers;
    for (uint32_t i = 0; i < here; ++i) {
      gradients_[i] += weight * terms.progress(samples.gradients_of(k, i + 1));
      times_[i] += weight * static_cast<double>(row[i]);
    }
    if (!limited) continue;
    cut_gradients_[here] += weight * terms.progress(samples.gradients_of(k, std::max(1U, here)));
    cut_times_[here] += weight * (here > 0 ? candidates_[limit_] : static_cast<double>(row[0]));
  }
  double cut_gradients = 0.0;
  double cut_time = 0.0;
  rate_ = 0.0;
  for (uint32_t i = 0; i < workers; ++i) {
    cut_gradients += cut_gradients_[i];
    cut_time += cut_times_[i];
    const double rate = (gradients_[i] + cut_gradients) / (terms.overhead + times_[i] + cut_time);
    if (rate < rate_) continue;  // of equal ones, the one with more gradients
    rate_ = rate;
    cutoff_ = i + 1;
  }
}

JointPlan JointSearch::judged(JointPlan plan, const JointSamples& samples,
                              const JointTerms& terms) {
  plan.gradients = 0.0;
  plan.time = terms.overhead;
  const uint32_t cutoff = std::min(plan.cutoff, samples.times.workers);
  const uint32_t least = std::clamp(plan.at_least, 1U, cutoff);
  for (uint32_t k = 0; k < samples.times.samples; ++k) {
    const std::span<const float> row = samples.times.row(k);
    auto end = static_cast<double>(row[cutoff - 1]);
    uint32_t here = cutoff;
    if (end > plan.time_limit) {
      here = std::max(least, arrivals_by(row, plan.time_limit));
      end = std::max(plan.time_limit, static_cast<double>(row[least - 1]));
    }
    plan.gradients += samples.weights[k] * terms.progress(samples.gradients_of(k, here));
    plan.time += samples.weights[k] * end;
  }
  return plan;
}

JointPlan JointSearch::all(const JointSamples& samples, const JointTerms& terms) {
  return judged({.cutoff = samples.times.workers, .time_limit = kNoTimeLimit}, samples, terms);
}

JointPlan JointSearch::best(const JointSamples& samples, const JointTerms& terms) {
  const Forecast& times = samples.times;
  DROVER_CHECK(times.sorted && times.samples > 0 && times.workers > 0);
  find_cutoff(samples, terms, false);
  JointPlan plan = {.cutoff = cutoff_, .time_limit = kNoTimeLimit};
  const double unlimited = rate_;
  pool(times);
  try_limits(times, 0, pooled_.size());
  cutoff_ = times.workers;
  find_limit(samples, terms);
  find_cutoff(samples, terms, true);
  find_limit(samples, terms);
  // Between its neighbours.
  const size_t begin = limit_ > 0 ? ranks_[limit_ - 1] : 0;
  const size_t end = limit_ + 1 < ranks_.size() ? ranks_[limit_ + 1] + 1 : pooled_.size();
  try_limits(times, begin, end);
  find_limit(samples, terms);
  if (rate_ > unlimited) plan = {.cutoff = cutoff_, .time_limit = candidates_[limit_]};
  double latest = 0.0;
  double arrivals = 0.0;
  for (uint32_t k = 0; k < times.samples; ++k) {
    latest = std::max(latest, static_cast<double>(times.row(k)[plan.cutoff - 1]));
    arrivals += samples.weights[k] *
                std::clamp(arrivals_by(times.row(k), plan.time_limit), 1U, plan.cutoff);
  }
  plan.time_limit = std::min(plan.time_limit, kSurprise * latest);
  plan.at_least =
      std::clamp(static_cast<uint32_t>(std::ceil(kAtLeast * arrivals)), 1U, plan.cutoff);
  return judged(plan, samples, terms);
}

}  // namespace drover
