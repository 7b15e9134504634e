#include "forecast/joint/joint_forecaster.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "forecast/run_time.h"

namespace drover {
namespace {

constexpr uint64_t kFilling = 11;
constexpr uint64_t kChoosing = 12;
constexpr size_t kCells = 150'000;
constexpr size_t kFewestRows = 64;
constexpr size_t kMostRows = 400;
// Residuals of its own that a worker needs to be its own measure.
constexpr size_t kOwnResiduals = 3;
constexpr double kCutShortFading = 0.95;
// A step in which many workers change says little about other steps.
constexpr double kChangedWeight = 0.2;
// Steps after the first, or after a change, until levels are known well enough for residuals.
constexpr double kSettling = 8.0;

float median_of(std::vector<float>& values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

// Residuals of many workers and steps, for workers without tails of their own.
void JointForecaster::pool_tails(Levels::Rule rule) {
  constexpr size_t kPooled = 8192;
  constexpr size_t kFewSettled = 8;
  // Residuals against levels that were hardly known are too large.
  size_t settled = 0;
  for (size_t i = 0; i < memory_.size(); ++i) settled += memory_.row(i).weight >= 1.0 ? 1 : 0;
  least_weight_ = settled >= kFewSettled ? 1.0 : 0.0;
  tails_.clear();
  size_t cells = 0;
  for (size_t i = 0; i < memory_.size(); ++i) cells += memory_.row(i).times.size();
  const size_t stride = std::max<size_t>(1, cells / kPooled);
  size_t next = stride / 2;
  for (size_t i = 0; i < memory_.size(); ++i) {
    const StepMemory::Row& row = memory_.row(i);
    for (; next < row.times.size(); next += stride) {
      const auto worker = static_cast<WorkerId>(next);
      if (row.first || row.weight < least_weight_ || row.seen[worker] == Seen::kAbsent) continue;
      tails_.push_back(
          {row.known_beyond_shift(rule, worker), row.residual(rule, worker) - row.shifts[rule]});
    }
    next -= row.times.size();
  }
  std::sort(tails_.begin(), tails_.end(),
            [](const Tail& a, const Tail& b) { return a.known > b.known; });
}

// The middle residual of the step at hand; a worker that was cut short counts with its bound.
float JointForecaster::shift_so_far(Levels::Rule rule, const StepMemory::Row& row) {
  scratch_.clear();
  for (WorkerId worker = 0; worker < row.times.size(); ++worker) {
    if (row.seen[worker] == Seen::kAbsent || !levels_.knows(worker)) continue;
    const float residual = bounds_[worker] - levels_.level(rule, worker);
    // Sooner than it would have come says nothing of the shift.
    scratch_.push_back(row.seen[worker] == Seen::kArrived ? residual : std::max(0.0F, residual));
  }
  return scratch_.empty() ? 0.0F : median_of(scratch_);
}

// A time beyond the bound: the worker's level, the shift of all in this step, and what is left of a
// residual that it has shown in another step, else one that another worker has shown. A residual
// counts as seen only if its step was long enough to show it, whatever it had turned out to be
// (Kaplan and Meier's estimate, one draw of it). If no worker has shown one, a little longer
// than the bound: a guess too short is put right by the waiting that it causes; one too long would
// never be found out.
float JointForecaster::beyond(WorkerId worker, float bound, float shift, DrawStream& draws) {
  if (!levels_.knows(worker)) return bound - 0.05F * static_cast<float>(std::log1p(-draws.unit()));
  const Levels::Rule rule = levels_.best();
  const float level = levels_.level(rule, worker) + shift;
  const float least = bound - level;
  own_.clear();
  for (size_t i = 0; i < memory_.size(); ++i) {
    const StepMemory::Row& row = memory_.row(i);
    if (row.first || row.weight < least_weight_) continue;
    if (worker >= row.times.size() || row.seen[worker] == Seen::kAbsent) continue;
    if (row.known_beyond_shift(rule, worker) <= least) continue;
    own_.push_back({0.0F, row.residual(rule, worker) - row.shifts[rule]});
  }
  if (own_.size() >= kOwnResiduals)
    return std::max(bound, level + own_[draws.below(static_cast<uint32_t>(own_.size()))].value);
  const auto end = std::partition_point(tails_.begin(), tails_.end(),
                                        [&](const Tail& tail) { return tail.known > least; });
  const auto count = static_cast<uint32_t>(end - tails_.begin() + own_.size());
  if (count > 0) {
    const uint32_t pick = draws.below(count);
    const Tail& tail = pick < own_.size() ? own_[pick] : tails_[pick - own_.size()];
    return std::max(bound, level + tail.value);
  }
  const double spread = std::max(0.02, levels_.error(rule));
  return bound - static_cast<float>(spread * std::log1p(-draws.unit()));
}

void JointForecaster::fill(const StepTimes& times, StepMemory::Row& row) {
  const size_t workers = times.seconds.size();
  row.step = times.step;
  row.times.assign(workers, 0.0F);
  row.seen.assign(workers, Seen::kAbsent);
  bounds_.assign(workers, 0.0F);
  const Levels::Rule rule = levels_.best();
  cut_short_ *= kCutShortFading;
  all_ *= kCutShortFading;
  double cut_short = 0.0;
  for (WorkerId worker = 0; worker < workers; ++worker) {
    if (!has_run_time(times, worker)) continue;
    bounds_[worker] = static_cast<float>(std::log(times.seconds[worker]));
    row.times[worker] = bounds_[worker];
    row.seen[worker] = times.known[worker] == Known::kArrived ? Seen::kArrived : Seen::kFilled;
    all_ += 1.0;
    if (row.seen[worker] == Seen::kFilled) cut_short += 1.0;
  }
  row.bounds = bounds_;
  cut_short_ += cut_short;
  if (cut_short == 0.0) return;
  pool_tails(rule);
  const float shift = shift_so_far(rule, row);
  for (WorkerId worker = 0; worker < workers; ++worker) {
    if (row.seen[worker] != Seen::kFilled) continue;
    DrawStream draws = forecast_draws(seed_, times.step, worker, kFilling);
    row.times[worker] = beyond(worker, bounds_[worker], shift, draws);
  }
}

// Many workers off by far more than they have been of late, and not only in this step's favour of
// one: what was before says little about the tails of now.
void JointForecaster::note_change(const StepMemory::Row& row) {
  changed_ = false;
  if (row.first || usable_ < 3) return;
  const Levels::Rule rule = levels_.best();
  const double typical = std::max(0.03, levels_.error(rule));
  size_t off = 0;
  size_t count = 0;
  for (WorkerId worker = 0; worker < row.times.size(); ++worker) {
    if (row.seen[worker] == Seen::kAbsent || !levels_.knows(worker)) continue;
    ++count;
    const double residual = static_cast<double>(bounds_[worker] - levels_.level(rule, worker));
    const bool beyond_bound = row.seen[worker] == Seen::kArrived || residual > 0.0;
    if (beyond_bound && std::abs(residual) > std::max(0.3, 5.0 * typical)) ++off;
  }
  changed_ = off >= 2 && 4 * off >= count;
}

void JointForecaster::learn(const StepTimes& times) {
  ++learned_;
  levels_.grow(times.seconds.size());
  StepMemory::Row row;
  fill(times, row);
  const size_t workers = row.times.size();
  row.first = true;
  for (WorkerId worker = 0; worker < workers; ++worker) {
    if (row.seen[worker] != Seen::kAbsent && levels_.knows(worker)) row.first = false;
  }
  row.residuals.assign(workers * Levels::kRules, 0.0F);
  for (size_t rule = 0; rule < Levels::kRules && !row.first; ++rule) {
    scratch_.clear();
    for (WorkerId worker = 0; worker < workers; ++worker) {
      if (row.seen[worker] == Seen::kAbsent || !levels_.knows(worker)) continue;
      row.residuals[rule * workers + worker] =
          row.times[worker] - levels_.level(static_cast<Levels::Rule>(rule), worker);
      scratch_.push_back(row.residuals[rule * workers + worker]);
    }
    if (!scratch_.empty()) row.shifts[rule] = median_of(scratch_);
  }
  note_change(row);
  levels_.judge(bounds_, row.seen);
  scratch_.clear();
  for (WorkerId worker = 0; worker < workers; ++worker) {
    if (row.seen[worker] != Seen::kAbsent) scratch_.push_back(row.times[worker]);
  }
  if (!scratch_.empty()) {
    const float middle = median_of(scratch_);
    row.common = common_.knows(0) ? common_.level(common_.best(), 0) : middle;
    const Seen arrived = Seen::kArrived;
    common_.grow(1);
    common_.judge({&middle, 1}, {&arrived, 1});
    common_.learn(times.step, {&middle, 1}, {&arrived, 1});
  }
  levels_.learn(times.step, row.times, row.seen);
  if (!row.first) ++usable_;
  ++since_change_;
  if (changed_) since_change_ = 0;
  row.weight =
      changed_ ? kChangedWeight : std::min(1.0, static_cast<double>(since_change_) / kSettling);
  memory_.add(std::move(row));
  if (changed_) memory_.forget_tails();
}

void JointForecaster::learn_late(Step step, WorkerId worker, double seconds) {
  if (!is_run_time(seconds)) return;
  StepMemory::Row* const row = memory_.find(step);
  if (row == nullptr || worker >= row->times.size() || row->seen[worker] != Seen::kFilled) return;
  const auto time = static_cast<float>(std::log(seconds));
  const float off = time - row->times[worker];
  row->times[worker] = time;
  row->seen[worker] = Seen::kArrived;
  row->bounds[worker] = time;
  for (size_t rule = 0; rule < Levels::kRules; ++rule)
    row->residuals[rule * row->times.size() + worker] += off;
  levels_.correct(step, worker, time);
}

void JointForecaster::last_step(std::span<const WorkerId> alive, std::vector<double>& times) const {
  times.clear();
  if (memory_.size() == 0) return;
  const StepMemory::Row& row = memory_.row(memory_.size() - 1);
  for (const WorkerId worker : alive) {
    if (worker >= row.times.size() || row.seen[worker] == Seen::kAbsent) continue;
    times.push_back(std::exp(static_cast<double>(row.times[worker])));
  }
}

float JointForecaster::level_of(View view, WorkerId worker) const {
  if (view == View::kRaw) return 0.0F;
  const float common = common_.level(common_.best(), 0);
  if (view == View::kCommon || !levels_.knows(worker)) return common;
  return levels_.level(levels_.best(), worker);
}

float JointForecaster::residual_of(View view, const StepMemory::Row& row, WorkerId worker) const {
  // The next worker that took part stands in for one that did not.
  const auto workers = static_cast<WorkerId>(row.times.size());
  WorkerId like = worker < workers ? worker : worker % workers;
  for (WorkerId tried = 0; tried < workers && row.seen[like] == Seen::kAbsent; ++tried)
    like = (like + 1) % workers;
  if (view == View::kRaw) return row.times[like];
  if (view == View::kCommon) return row.times[like] - row.common;
  return row.residual(levels_.best(), like);
}

// All steps that are remembered, or, of many workers, the newest and some of the others.
void JointForecaster::choose_rows(Step step, size_t workers, WeightedForecast& out) {
  const std::span<const double> weights = memory_.weights();
  const size_t space = std::clamp(kCells / std::max<size_t>(1, workers), kFewestRows, kMostRows);
  const size_t size = memory_.size();
  chosen_.clear();
  out.weights.clear();
  const size_t newest = size <= space ? size : space / 2;
  const size_t older = size - newest;
  const size_t picks = std::min(older, space - newest);
  DrawStream draws = forecast_draws(seed_, step, 0, kChoosing);
  for (size_t pick = 0; pick < picks; ++pick) {
    const size_t begin = pick * older / picks;
    const size_t end = (pick + 1) * older / picks;
    double weight = 0.0;
    for (size_t i = begin; i < end; ++i) weight += weights[i];
    chosen_.push_back(
        static_cast<uint32_t>(begin + draws.below(static_cast<uint32_t>(end - begin))));
    out.weights.push_back(weight);
  }
  for (size_t i = older; i < size; ++i) {
    chosen_.push_back(static_cast<uint32_t>(i));
    out.weights.push_back(weights[i]);
  }
  // Rows without a weight, and those that begin a record.
  size_t kept = 0;
  for (size_t i = 0; i < chosen_.size(); ++i) {
    if (out.weights[i] <= 1e-9 || memory_.row(chosen_[i]).first) continue;
    chosen_[kept] = chosen_[i];
    out.weights[kept++] = out.weights[i];
  }
  chosen_.resize(kept);
  out.weights.resize(kept);
  double sum = 0.0;
  for (const double weight : out.weights) sum += weight;
  for (double& weight : out.weights) weight /= sum;
}

void JointForecaster::forecast(View view, Step step, std::span<const WorkerId> alive,
                               WeightedForecast& out) {
  DROVER_CHECK(ready() && !alive.empty());
  choose_rows(step, alive.size(), out);
  out.samples.resize(static_cast<uint32_t>(chosen_.size()), static_cast<uint32_t>(alive.size()));
  scratch_.clear();
  for (const WorkerId worker : alive) scratch_.push_back(level_of(view, worker));
  for (uint32_t k = 0; k < chosen_.size(); ++k) {
    const StepMemory::Row& row = memory_.row(chosen_[k]);
    const std::span<float> times = out.samples.row(k);
    for (size_t i = 0; i < alive.size(); ++i)
      times[i] = scratch_[i] + residual_of(view, row, alive[i]);
    for (float& time : times) time = std::exp(std::clamp(time, -80.0F, 80.0F));
  }
}

std::string JointForecaster::basis() const {
  return "levels and residuals of the last " + std::to_string(memory_.size()) + " steps" +
         censored_share_text(cut_short_, all_);
}

}  // namespace drover
