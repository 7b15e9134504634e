#include "forecast/learned/impute.h"

#include <algorithm>
#include <cmath>

#include "forecast/run_time.h"

namespace drover {
namespace {

// On the log scale. Short on purpose, as the empirical forecaster's own tail is: a guess too short
// is put right by the waiting it causes.
constexpr double kMeanBeyond = 0.1;

// Use of draws, distinct from that of the forecast itself.
constexpr uint64_t kUse = 1;

}  // namespace

float impute(std::span<const float> samples_of_worker, float log_bound, DrawStream& draws) {
  const float bound = std::exp(log_bound);
  const auto beyond = [&](float sample) { return sample > bound; };
  const auto count = static_cast<uint32_t>(
      std::count_if(samples_of_worker.begin(), samples_of_worker.end(), beyond));
  if (count == 0) {
    return log_bound - static_cast<float>(kMeanBeyond * std::log1p(-draws.unit()));
  }
  uint32_t before = draws.below(count);
  for (const float sample : samples_of_worker) {
    // exp and log need not be each other's inverse to the last bit.
    if (beyond(sample) && before-- == 0) return std::max(log_bound, std::log(sample));
  }
  return log_bound;
}

std::span<const PastTime> Imputer::impute_step(const StepTimes& times) {
  row_.assign(times.seconds.size(), {});
  cut_short_.clear();
  for (WorkerId worker = 0; worker < row_.size(); ++worker) {
    if (!has_run_time(times, worker)) continue;
    const float log_time = std::log(to_run_time(times.seconds[worker]));
    row_[worker] = {log_time, log_time, times.known[worker]};
    if (times.known[worker] == Known::kLonger) cut_short_.push_back(worker);
  }
  const bool ready = !cut_short_.empty() && ecdf_.ready(cut_short_);
  if (ready) ecdf_.forecast(times.step, cut_short_, expected_);
  for (size_t i = 0; i < cut_short_.size(); ++i) {
    samples_.clear();
    for (uint32_t k = 0; ready && k < expected_.samples; ++k) {
      samples_.push_back(expected_.row(k)[i]);
    }
    DrawStream draws = forecast_draws(seed_, times.step, cut_short_[i], kUse);
    PastTime& time = row_[cut_short_[i]];
    time.log_time = impute(samples_, time.bound, draws);
  }
  ecdf_.learn(times);
  return row_;
}

void Imputer::correct(Step step, WorkerId worker, double seconds) {
  ecdf_.learn_late(step, worker, seconds);
}

History history_of(std::span<const StepTimes> record, uint64_t seed) {
  size_t most = 1;
  for (const StepTimes& times : record) most = std::max(most, times.seconds.size());
  History history(most * std::max<size_t>(1, record.size()));
  Imputer imputer(seed);
  for (const StepTimes& times : record) history.add(times.step, imputer.impute_step(times));
  return history;
}

}  // namespace drover
