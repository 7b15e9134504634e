#include "view/step_facts.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace drover {
namespace {

StepSplit split_of(const StepRecord& record, Duration slowest_compute,
                   const RecordedArrival* last) {
  Duration left = std::max(record.elapsed, Duration::zero());
  // Clocks of several processes are in these numbers, so each takes no more than is left.
  const auto take = [&left](Duration wanted) {
    const Duration taken = std::clamp(wanted, Duration::zero(), left);
    left -= taken;
    return seconds(taken);
  };
  StepSplit split;
  split.deciding_s = take(record.undecided);
  split.aggregating_s = take(record.closing - record.undecided);
  if (slowest_compute <= Duration::zero()) return split;
  split.computing_s = take(slowest_compute);
  split.moving_s = take(last->arrival.run_time - last->arrival.compute);
  split.waiting_s = seconds(left);
  return split;
}

}  // namespace

StepFacts facts_of(const StepRecord& record, std::span<const RecordedArrival> arrivals,
                   const DecisionRecord* decision, double last_foretold_s) {
  StepFacts facts{
      .record = record, .at_s = seconds(record.at), .elapsed_s = seconds(record.elapsed)};
  facts.alive = static_cast<double>(arrivals.size());
  if (decision != nullptr) {
    facts.cutoff = decision->cutoff;
    facts.alive = decision->alive;
  }
  facts.oracle = oracle_cutoff(arrivals);
  const RecordedArrival* last = nullptr;  // of those that were used
  Duration slowest_compute{};
  Duration last_of_all{};
  for (const RecordedArrival& each : arrivals) {
    facts.censored += each.arrival.censored ? 1 : 0;
    last_of_all = std::max(last_of_all, each.arrival.run_time);
    if (!in_time(each)) continue;
    slowest_compute = std::max(slowest_compute, each.arrival.compute);
    if (last == nullptr || each.arrival.run_time > last->arrival.run_time) last = &each;
  }
  facts.split = split_of(record, slowest_compute, last);
  if (last == nullptr) return facts;
  // Having waited for all, the step would have taken the last of all's run-time and whatever it
  // took beside the last one used; the difference to what it took is that of the two run-times.
  facts.saved_s = seconds(last_of_all - last->arrival.run_time);
  facts.saved_foretold = facts.censored > 0 && !std::isnan(last_foretold_s);
  facts.saved_about_s =
      facts.saved_foretold
          ? std::max(facts.saved_s, last_foretold_s - seconds(last->arrival.run_time))
          : facts.saved_s;
  return facts;
}

double oracle_cutoff(std::span<const RecordedArrival> arrivals) {
  std::vector<Duration> times;
  times.reserve(arrivals.size());
  for (const RecordedArrival& each : arrivals) {
    if (each.arrival.censored) return kUnknown;
    times.push_back(each.arrival.run_time);
  }
  std::sort(times.begin(), times.end());
  double best = kUnknown;
  double best_rate = 0.0;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] <= Duration::zero()) continue;
    const double rate = static_cast<double>(i + 1) / seconds(times[i]);
    if (rate < best_rate) continue;
    best_rate = rate;
    best = static_cast<double>(i + 1);
  }
  return best;
}

}  // namespace drover
