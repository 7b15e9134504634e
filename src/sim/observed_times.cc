#include "sim/observed_times.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/check.h"
#include "core/straggler_rule.h"

namespace drover {

StepTimes observed_times(Step step, std::span<const double> run_times, const StepClose& close) {
  StepTimes seen;
  seen.step = step;
  seen.elapsed = close.elapsed;
  seen.contributors = close.contributors;
  seen.seconds.resize(run_times.size(), 0.0);
  seen.known.resize(run_times.size(), Known::kNothing);
  for (size_t worker = 0; worker < run_times.size(); ++worker) {
    if (std::isnan(run_times[worker])) continue;
    const bool arrived = run_times[worker] <= close.elapsed;
    seen.known[worker] = arrived ? Known::kArrived : Known::kLonger;
    seen.seconds[worker] = arrived ? run_times[worker] : close.elapsed;
  }
  return seen;
}

namespace {

// Orders a heap so that the first element is the next to finish; ties are ordered by step and
// worker.
constexpr auto kLater = [](const auto& a, const auto& b) {
  return std::tuple(a.finishes, a.arrival.step, a.arrival.worker) >
         std::tuple(b.finishes, b.arrival.step, b.arrival.worker);
};

}  // namespace

Probes::Probes(double share, uint64_t seed) : share_(share), seed_(seed) {
  DROVER_CHECK(share >= 0.0 && share <= 1.0);
}

void Probes::step_closed(Step step, double opened, std::span<const double> run_times,
                         const StepClose& close, std::span<const WorkerId> requested) {
  if (share_ == 0.0 && requested.empty()) return;
  for (size_t i = 0; i < run_times.size(); ++i) {
    if (!(run_times[i] > close.elapsed)) continue;  // it was seen, or took no part
    const auto worker = static_cast<WorkerId>(i);
    const bool drawn = share_ > 0.0 && is_probe(seed_, share_, step, worker);
    if (!drawn && !std::binary_search(requested.begin(), requested.end(), worker)) continue;
    under_way_.push_back({opened + run_times[i], !drawn, {step, worker, run_times[i]}});
    std::push_heap(under_way_.begin(), under_way_.end(), kLater);
  }
}

bool Probes::is_busy(WorkerId worker, double now) const {
  return std::any_of(under_way_.begin(), under_way_.end(), [&](const Probe& probe) {
    return probe.requested && probe.arrival.worker == worker && probe.finishes > now;
  });
}

void Probes::stop_requested(Step step, double now) {
  const size_t stopped = std::erase_if(under_way_, [&](const Probe& probe) {
    return probe.requested && probe.arrival.step < step && probe.finishes > now;
  });
  if (stopped > 0) std::make_heap(under_way_.begin(), under_way_.end(), kLater);
}

std::vector<LateArrival> Probes::finished_by(double now) {
  std::vector<LateArrival> finished;
  while (!under_way_.empty() && under_way_.front().finishes <= now) {
    std::pop_heap(under_way_.begin(), under_way_.end(), kLater);
    finished.push_back(under_way_.back().arrival);
    under_way_.pop_back();
  }
  return finished;
}

}  // namespace drover
