#include "forecast/ecdf.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "forecast/run_time.h"

namespace drover {
namespace {

// The age is capped at this, so that weights stay normal floating-point numbers.
constexpr double kMaxHalvings = 400.0;

}  // namespace

EcdfForecaster::EcdfForecaster(const EcdfSettings& settings)
    : settings_(settings), pooled_(settings.pooled_half_life), ratios_(settings.pooled_half_life) {
  DROVER_CHECK(settings.half_life > 0.0);
  DROVER_CHECK(settings.tail_exponent > 0.0);
  DROVER_CHECK(settings.kept_times >= 1);
  DROVER_CHECK(settings.kept_bounds >= 1);
  const auto oldest = static_cast<size_t>(std::ceil(kMaxHalvings * settings.half_life));
  for (size_t age = 0; age <= std::min<size_t>(oldest, 1 << 16); ++age) {
    weights_.push_back(std::exp2(-static_cast<double>(age) / settings.half_life));
  }
}

double EcdfForecaster::weight_of_age(uint32_t age) const {
  return weights_[std::min<size_t>(age, weights_.size() - 1)];
}

std::span<EcdfForecaster::Seen> EcdfForecaster::kept(WorkerId worker) {
  const Worker& counts = workers_[worker];
  return std::span(seen_).subspan(size_t{worker} * stride(), counts.times + counts.bounds);
}

void EcdfForecaster::erase(WorkerId worker, size_t index) {
  const std::span<Seen> all = kept(worker);
  --(all[index].censored() ? workers_[worker].bounds : workers_[worker].times);
  std::copy(all.begin() + static_cast<ptrdiff_t>(index) + 1, all.end(),
            all.begin() + static_cast<ptrdiff_t>(index));
}

void EcdfForecaster::insert(WorkerId worker, const Seen& seen) {
  Worker& counts = workers_[worker];
  uint32_t& count = seen.censored() ? counts.bounds : counts.times;
  if (count == (seen.censored() ? settings_.kept_bounds : settings_.kept_times)) {
    // Replace the oldest of its kind.
    const std::span<const Seen> all = kept(worker);
    size_t oldest = all.size();
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].censored() != seen.censored()) continue;
      if (oldest == all.size() || all[i].step() < all[oldest].step()) oldest = i;
    }
    erase(worker, oldest);
  }
  ++count;
  const std::span<Seen> all = kept(worker);
  size_t place = all.size() - 1;
  for (; place > 0 && all[place - 1].time > seen.time; --place) all[place] = all[place - 1];
  all[place] = seen;
}

void EcdfForecaster::learn(const StepTimes& times) {
  if (learned_ == 0) first_step_ = times.step;
  ++learned_;
  last_step_ = times.step;
  if (times.seconds.size() > workers_.size()) {
    workers_.resize(times.seconds.size());
    seen_.resize(workers_.size() * stride());
  }
  const auto step = static_cast<uint32_t>(times.step - first_step_);
  const double fading = weight_of_age(1);
  all_ *= fading;
  cut_short_ *= fading;
  for (WorkerId worker = 0; worker < times.seconds.size(); ++worker) {
    if (!has_run_time(times, worker)) continue;
    const bool censored = times.known[worker] == Known::kLonger;
    const float time = to_run_time(times.seconds[worker]);
    const float median = workers_[worker].median;
    const float ratio = median > 0.0F ? to_run_time(double{time} / double{median}) : 0.0F;
    insert(worker, {time, ratio, 2 * step + (censored ? 1U : 0U)});
    pooled_.add(step, time, censored);
    if (ratio > 0.0F) ratios_.add(step, ratio, censored);
    update_median(worker, step);
    any_arrived_ = any_arrived_ || !censored;
    all_ += 1.0;
    cut_short_ += censored ? 1.0 : 0.0;
  }
}

void EcdfForecaster::learn_late(Step step, WorkerId worker, double seconds) {
  if (!is_run_time(seconds) || worker >= workers_.size() || step < first_step_) return;
  const auto relative = static_cast<uint32_t>(step - first_step_);
  const std::span<const Seen> all = kept(worker);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].censored() || all[i].step() != relative) continue;
    const Seen before = all[i];
    Seen after = before;
    after.time = std::max(before.time, to_run_time(seconds));
    after.tag = 2 * relative;
    if (before.ratio > 0.0F) {
      after.ratio = to_run_time(double{before.ratio} * double{after.time} / double{before.time});
      ratios_.remove(relative, before.ratio, true);
      ratios_.add(relative, after.ratio, false);
    }
    erase(worker, i);
    insert(worker, after);
    pooled_.remove(relative, before.time, true);
    pooled_.add(relative, after.time, false);
    update_median(worker, static_cast<uint32_t>(last_step_ - first_step_));
    any_arrived_ = true;
    return;
  }
}

bool EcdfForecaster::ready(std::span<const WorkerId>) const {
  // An unknown worker is forecast from the others.
  return learned_ >= settings_.warmup && any_arrived_;
}

double EcdfForecaster::fit(WorkerId worker, uint32_t step) {
  observations_.clear();
  double total = 0.0;
  if (worker < workers_.size()) {
    for (const Seen& seen : kept(worker)) {
      const double weight = weight_of_age(step - std::min(step, seen.step()));
      observations_.push_back({double{seen.time}, seen.censored(), weight});
      total += weight;
    }
  }
  curve_.fit(observations_);
  return total;
}

void EcdfForecaster::update_median(WorkerId worker, uint32_t step) {
  if (workers_[worker].times == 0) return;
  fit(worker, step);
  const double median = curve_.quantile(0.5);
  float& known = workers_[worker].median;
  // If the worker is mostly censored, keep its old median. Without one, use the last bound.
  if (std::isfinite(median)) {
    known = to_run_time(median);
  } else if (known == 0.0F) {
    known = to_run_time(curve_.last());
  }
}

void EcdfForecaster::sample_beyond(double bound, const SurvivalCurve& pooled, double unit,
                                   std::span<const double> u, std::span<float> out) const {
  const std::span<const double> times = pooled.times();
  const std::span<const double> cumulated = pooled.cumulated();
  const double beyond = pooled.survival(bound / unit);
  const double left_over = pooled.left_over();
  const double rest = std::min(left_over, beyond);
  const double last = std::max(bound, unit * pooled.last());
  auto at = static_cast<size_t>(std::upper_bound(times.begin(), times.end(), bound / unit) -
                                times.begin());
  for (size_t i = 0; i < u.size(); ++i) {
    const double surviving = beyond * (1.0 - u[i]);
    if (surviving > left_over && at < times.size()) {
      // The u ascend, so the search continues from the last position.
      while (at + 1 < times.size() && 1.0 - cumulated[at] > surviving) ++at;
      out[i] = to_run_time(unit * times[at]);
    } else {
      // No worker was observed this late. A Pareto tail has no scale of its own, so it suits every
      // unit and cluster: P(x > t) = (last / t)^exponent. With exponent 4 the median is 19 % later
      // than the bound, and one in ten is 78 % later. A short tail is safer: too short a guess
      // makes a step wait and see the true time, too long a guess is never corrected.
      const double share = rest > 0.0 ? std::min(1.0, surviving / rest) : 1.0 - u[i];
      out[i] = to_run_time(last * std::pow(share, -1.0 / settings_.tail_exponent));
    }
  }
}

void EcdfForecaster::sample_worker(WorkerId worker, uint32_t step, DrawStream& draws,
                                   std::span<float> out) {
  const auto count = static_cast<uint32_t>(out.size());
  const double jitter = draws.unit();
  strata_.resize(count);
  const double weight = settings_.per_worker ? fit(worker, step) : 0.0;
  // In multiples of the worker's median, if it has one and any ratio is known.
  const bool unknown = weight == 0.0 || workers_[worker].median == 0.0F || ratios_.curve().empty();
  const SurvivalCurve& pooled = unknown ? pooled_.curve() : ratios_.curve();
  const double unit = unknown ? 1.0 : double{workers_[worker].median};
  uint32_t from_pool = count;
  if (weight > 0.0) {
    const double share = unknown ? 0.0 : settings_.pooled_share / (settings_.pooled_share + weight);
    from_pool = std::min(count, static_cast<uint32_t>(count * share + draws.unit()));
  }
  for (uint32_t k = 0; k < from_pool; ++k) strata_[k] = (k + jitter) / from_pool;
  sample_beyond(0.0, pooled, unit, std::span(strata_).first(from_pool), out.first(from_pool));
  const uint32_t own = count - from_pool;
  if (own == 0) return;
  // Sample k gets the first step `at` of the curve with (k + jitter) / own <= cumulated. Counting
  // the samples per step, instead of walking both lists, avoids mispredicted branches and halves
  // the time of a forecast.
  ends_.assign(own + 1, 0U);
  uint32_t end = 0;
  for (const double cumulated : curve_.cumulated()) {
    end = std::min(own, static_cast<uint32_t>(cumulated * own + (1.0 - jitter)));
    ++ends_[end];
  }
  uint32_t k = 0;
  for (size_t at = 0; k < end; ++k) {
    at += ends_[k];
    out[from_pool + k] = to_run_time(curve_.times()[at]);
  }
  if (k == own) return;
  const double reached = 1.0 - curve_.left_over();
  const uint32_t begin = k;
  for (; k < own; ++k) strata_[k] = ((k + jitter) / own - reached) / (1.0 - reached);
  sample_beyond(curve_.last(), pooled, unit, std::span(strata_).subspan(begin, own - begin),
                out.subspan(from_pool + begin));
}

void EcdfForecaster::forecast(Step step, std::span<const WorkerId> alive, Forecast& out) {
  forecast(step, alive, settings_.samples > 0 ? settings_.samples : sample_count(alive.size()),
           out);
}

void EcdfForecaster::forecast(Step step, std::span<const WorkerId> alive, uint32_t samples,
                              Forecast& out) {
  DROVER_CHECK(ready(alive));
  DROVER_CHECK(!alive.empty());
  out.resize(samples, static_cast<uint32_t>(alive.size()));
  column_.resize(samples);
  const auto now = static_cast<uint32_t>(last_step_ - first_step_);
  for (size_t i = 0; i < alive.size(); ++i) {
    DrawStream draws = forecast_draws(settings_.seed, step, alive[i]);
    sample_worker(alive[i], now, draws, column_);
    // Shuffled per worker, so that workers are independent within a sample.
    draws.shuffle(std::span(column_));
    for (uint32_t k = 0; k < samples; ++k) out.times[size_t{k} * alive.size() + i] = column_[k];
  }
}

std::string EcdfForecaster::basis() const {
  return "half-life " + std::to_string(std::lround(settings_.half_life)) + " steps" +
         censored_share_text(cut_short_, all_);
}

}  // namespace drover
