#include "forecast/ewma.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "forecast/run_time.h"

namespace drover {
namespace {

// Smaller residuals on the log scale are clock noise and rounding.
constexpr double kLeastScale = 1e-4;
// Weight of a new residual in a worker's scale, and weight of the pooled scale in residuals.
constexpr double kScaleFading = 0.1;
constexpr double kScalesOfOthers = 4.0;
// Larger residuals, in scales, are limited to this: they are specific to one worker.
constexpr double kLargestStandard = 12.0;
// The pooled ring spans at least this number of steps, for any number of workers.
constexpr double kPooledSteps = 8.0;
constexpr uint64_t kImputing = 1;  // uses of draws, distinct from the forecast itself
constexpr uint64_t kPooling = 2;

}  // namespace

EwmaForecaster::EwmaForecaster(const EwmaSettings& settings) : settings_(settings) {
  DROVER_CHECK(settings.alpha > 0.0);
  DROVER_CHECK(settings.alpha <= 1.0);
  DROVER_CHECK(settings.kept >= 2);
  DROVER_CHECK(settings.kept_pooled >= 1);
  DROVER_CHECK(settings.pooled_weight > 0.0);
}

size_t EwmaForecaster::place_of(WorkerId worker, uint32_t index) const {
  const uint32_t place = workers_[worker].begin + index;
  return size_t{worker} * settings_.kept +
         (place >= settings_.kept ? place - settings_.kept : place);
}

const EwmaForecaster::Entry& EwmaForecaster::entry(WorkerId worker, uint32_t index) const {
  return entries_[place_of(worker, index)];
}

EwmaForecaster::Entry& EwmaForecaster::entry(WorkerId worker, uint32_t index) {
  return entries_[place_of(worker, index)];
}

void EwmaForecaster::advance(State& state, Entry& entry) const {
  ++state.updates;
  if (state.updates == 1) {
    state.level = entry.y;
    return;
  }
  entry.residual = entry.y - state.level;
  if (entry.imputed) {
    // A bound below the level has no information, so the draw must not move the level, which would
    // drift without measurements. Draws never change the scale, because they depend on it.
    if (entry.bound > state.level) state.level += settings_.alpha * entry.residual;
    return;
  }
  // The first few run-times are averaged, so that the first one does not dominate.
  const double alpha = std::max(settings_.alpha, 1.0 / static_cast<double>(state.updates));
  state.level += alpha * entry.residual;
  ++state.measured;
  const double fading = std::max(kScaleFading, 1.0 / state.measured);
  state.scale += fading * (std::abs(entry.residual) - state.scale);
}

double EwmaForecaster::scale_of(const State& state) const {
  const double own = std::min(2.0 / kScaleFading, static_cast<double>(state.measured));
  return std::max(kLeastScale,
                  (own * state.scale + kScalesOfOthers * pooled_scale_) / (own + kScalesOfOthers));
}

uint32_t EwmaForecaster::first_residual(WorkerId worker) const {
  return workers_[worker].now.updates == workers_[worker].count ? 1 : 0;
}

double EwmaForecaster::share_of_own(WorkerId worker) const {
  const double own = workers_[worker].count - first_residual(worker);
  return own / (own + settings_.pooled_weight);
}

WorkerId EwmaForecaster::stand_in(WorkerId worker, DrawStream& draws) const {
  if (worker < workers_.size() && workers_[worker].now.updates > 0) return worker;
  return known_workers_[draws.below(static_cast<uint32_t>(known_workers_.size()))];
}

double EwmaForecaster::append(WorkerId id, const Entry& added) {
  Worker& worker = workers_[id];
  if (worker.now.updates == 0) known_workers_.push_back(id);
  if (worker.count == settings_.kept) {
    advance(worker.base, entry(id, 0));
    worker.begin = (worker.begin + 1) % settings_.kept;
    --worker.count;
  }
  Entry& place = entry(id, worker.count++);
  place = added;
  advance(worker.now, place);
  // The scale includes this residual, so that also the first residual has a scale.
  return std::clamp(place.residual / scale_of(worker.now), -kLargestStandard, kLargestStandard);
}

double EwmaForecaster::impute(WorkerId id, double bound, DrawStream& draws) {
  if (known_workers_.empty()) return bound;
  const WorkerId like = stand_in(id, draws);
  const double level = workers_[like].now.level;
  const double scale = scale_of(workers_[like].now);
  // Own and pooled residuals that exceed the bound, with the weights of the forecast.
  long_enough_.clear();
  const uint32_t first = first_residual(like);
  const uint32_t count = workers_[like].count;
  for (uint32_t i = first; i < count; ++i) {
    const double residual = entry(like, i).residual;
    if (level + residual > bound) long_enough_.push_back(residual);
  }
  const auto pooled =
      std::upper_bound(sorted_.begin(), sorted_.end(), static_cast<float>((bound - level) / scale));
  const auto pooled_count = static_cast<uint32_t>(sorted_.end() - pooled);
  const double share = share_of_own(like);
  double own_weight = 0.0;
  double pooled_weight = 0.0;
  if (!long_enough_.empty()) {
    own_weight = share * static_cast<double>(long_enough_.size()) / (count - first);
  }
  if (pooled_count > 0) {
    pooled_weight = (1.0 - share) * pooled_count / static_cast<double>(sorted_.size());
  }
  if (own_weight + pooled_weight <= 0.0) {
    // No residual is large enough: add an exponential draw on the worker's scale to the bound. Too
    // short a guess makes a step wait and see the true time; too long a guess is never corrected.
    return bound - scale * std::log(1.0 - draws.unit());
  }
  if (draws.unit() * (own_weight + pooled_weight) < own_weight) {
    return level + long_enough_[draws.below(static_cast<uint32_t>(long_enough_.size()))];
  }
  return std::max(bound, level + scale * double{pooled[draws.below(pooled_count)]});
}

void EwmaForecaster::learn(const StepTimes& times) {
  ++learned_;
  if (times.seconds.size() > workers_.size()) {
    workers_.resize(times.seconds.size());
    entries_.resize(workers_.size() * settings_.kept);
  }
  constexpr double kFading = 0.95;
  all_ *= kFading;
  cut_short_ *= kFading;
  sorted_ = pooled_;
  std::sort(sorted_.begin(), sorted_.end());
  const double pooled_share =
      settings_.kept_pooled / (kPooledSteps * static_cast<double>(times.seconds.size()));
  // Arrived workers come first, so that an unknown, censored worker has a stand-in.
  for (const Known kind : {Known::kArrived, Known::kLonger}) {
    for (WorkerId worker = 0; worker < times.seconds.size(); ++worker) {
      if (times.known[worker] != kind || !has_run_time(times, worker)) continue;
      all_ += 1.0;
      Entry added;
      added.step = times.step;
      added.y = std::log(times.seconds[worker]);
      if (kind == Known::kLonger) {
        cut_short_ += 1.0;
        DrawStream draws = forecast_draws(settings_.seed, times.step, worker, kImputing);
        added.imputed = true;
        added.bound = added.y;
        added.y = impute(worker, added.bound, draws);
      } else {
        any_arrived_ = true;
      }
      const bool first = workers_[worker].now.updates == 0;
      const auto standard = static_cast<float>(append(worker, added));
      if (first) continue;
      // A random subset of the residuals, if the ring is too small for all.
      DrawStream draws = forecast_draws(settings_.seed, times.step, worker, kPooling);
      if (draws.unit() >= pooled_share) continue;
      if (pooled_.size() < settings_.kept_pooled) {
        pooled_.push_back(standard);
      } else {
        pooled_[next_pooled_] = standard;
        next_pooled_ = (next_pooled_ + 1) % pooled_.size();
      }
    }
  }
  double sum = 0.0;
  double measured = 0.0;
  for (const WorkerId worker : known_workers_) {
    if (workers_[worker].now.measured == 0) continue;
    sum += workers_[worker].now.scale;
    measured += 1.0;
  }
  pooled_scale_ = measured > 0.0 ? sum / measured : 0.0;
}

void EwmaForecaster::learn_late(Step step, WorkerId id, double seconds) {
  if (!is_run_time(seconds) || id >= workers_.size()) return;
  Worker& worker = workers_[id];
  for (uint32_t i = 0; i < worker.count; ++i) {
    Entry& late = entry(id, i);
    if (late.step != step || !late.imputed) continue;
    late.y = std::max(late.bound, std::log(seconds));
    late.imputed = false;
    any_arrived_ = true;
    worker.now = worker.base;
    for (uint32_t k = 0; k < worker.count; ++k) advance(worker.now, entry(id, k));
    return;
  }
}

bool EwmaForecaster::ready(std::span<const WorkerId>) const {
  // An unknown worker is forecast from the others.
  return learned_ >= settings_.warmup && any_arrived_;
}

double EwmaForecaster::draw_time(WorkerId id, double scale, double share, double fastest,
                                 DrawStream& draws) const {
  const Worker& worker = workers_[id];
  double residual = 0.0;
  if (draws.unit() < share) {
    const uint32_t first = first_residual(id);
    residual = entry(id, first + draws.below(worker.count - first)).residual;
  } else if (!pooled_.empty()) {
    residual = scale * double{pooled_[draws.below(static_cast<uint32_t>(pooled_.size()))]};
  }
  // The forecast is at least the fastest observed run-time. Without this, one small pooled
  // residual, scaled to a worker with a large scale, predicts a first arrival near zero, and a
  // cutoff of one seems best.
  return std::exp(std::max(fastest, worker.now.level + residual));
}

void EwmaForecaster::forecast(Step step, std::span<const WorkerId> alive, Forecast& out) {
  forecast(step, alive, settings_.samples > 0 ? settings_.samples : sample_count(alive.size()),
           out);
}

void EwmaForecaster::forecast(Step step, std::span<const WorkerId> alive, uint32_t samples,
                              Forecast& out) {
  DROVER_CHECK(ready(alive));
  DROVER_CHECK(!alive.empty());
  out.resize(samples, static_cast<uint32_t>(alive.size()));
  for (size_t i = 0; i < alive.size(); ++i) {
    DrawStream draws = forecast_draws(settings_.seed, step, alive[i]);
    const bool unknown = alive[i] >= workers_.size() || workers_[alive[i]].now.updates == 0;
    WorkerId like = 0;
    double scale = 0.0;
    double share = 0.0;
    double fastest = 0.0;
    for (uint32_t k = 0; k < samples; ++k) {
      if (k == 0 || unknown) {  // a different stand-in per sample
        like = stand_in(alive[i], draws);
        scale = scale_of(workers_[like].now);
        share = share_of_own(like);
        fastest = std::numeric_limits<double>::infinity();
        for (uint32_t at = 0; at < workers_[like].count; ++at) {
          fastest = std::min(fastest, entry(like, at).y);
        }
      }
      out.times[size_t{k} * alive.size() + i] =
          to_run_time(draw_time(like, scale, share, fastest, draws));
    }
  }
}

std::string EwmaForecaster::basis() const {
  return "levels with weight " + std::to_string(std::lround(100.0 * settings_.alpha)) +
         " % on the last step" + censored_share_text(cut_short_, all_);
}

}  // namespace drover
