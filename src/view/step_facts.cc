#include "view/step_facts.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace drover {
namespace {

StepSplit split_of(const StepRecord& record, Duration slowest_compute,
                   const RecordedArrival* last) {
  Duration left = std::max(record.elapsed, Duration::zero());
  // These numbers are from clocks of several processes, so each part is limited to the rest.
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

// Totals of a step's arrivals.
struct ArrivalTotals {
  const RecordedArrival* last = nullptr;  // of those in time
  Duration last_of_all{};
  Duration slowest_compute{};  // of those in time
  uint64_t censored = 0;
};

TimeSaved time_saved(const StepRecord& record, const ArrivalTotals& arrivals,
                     double last_predicted_s) {
  // A synchronous step would have taken longer by the difference of the two run-times.
  const Duration waited =
      arrivals.last != nullptr ? arrivals.last->arrival.run_time : record.elapsed;
  TimeSaved saved;
  saved.at_least_s = std::max(0.0, seconds(arrivals.last_of_all - waited));
  saved.predicted = arrivals.censored > 0 && !std::isnan(last_predicted_s);
  saved.about_s = saved.at_least_s;
  if (saved.predicted) saved.about_s = std::max(saved.about_s, last_predicted_s - seconds(waited));
  return saved;
}

void add_computing(const RecordedArrival& each, Duration elapsed, StepComputing& computing) {
  const Duration compute = each.arrival.compute;
  const bool arrived = in_time(each);
  (arrived ? computing.used : computing.wasted) += compute;
  if (arrived && compute == Duration::zero()) return;
  computing.all_s += seconds(elapsed);
  if (arrived) computing.idle_s += seconds(std::max(Duration::zero(), elapsed - compute));
}

}  // namespace

StepFacts facts_of(const StepRecord& record, std::span<const RecordedArrival> arrivals,
                   const DecisionRecord* decision, double last_predicted_s) {
  StepFacts facts{.at_s = seconds(record.at), .elapsed_s = seconds(record.elapsed)};
  facts.alive = static_cast<double>(arrivals.size());
  if (decision != nullptr) {
    facts.cutoff = decision->cutoff;
    facts.alive = decision->alive;
  }
  facts.oracle = oracle_cutoff(arrivals);
  ArrivalTotals totals;
  for (const RecordedArrival& each : arrivals) {
    const ArrivalRecord& arrival = each.arrival;
    totals.censored += arrival.censored ? 1 : 0;
    totals.last_of_all = std::max(totals.last_of_all, arrival.run_time);
    add_computing(each, record.elapsed, facts.computing);
    if (!in_time(each)) continue;
    totals.slowest_compute = std::max(totals.slowest_compute, arrival.compute);
    if (totals.last == nullptr || arrival.run_time > totals.last->arrival.run_time)
      totals.last = &each;
    if (arrival.worker == record.last_worker) facts.last_worker = arrival.worker;
  }
  facts.censored = totals.censored;
  facts.split = split_of(record, totals.slowest_compute, totals.last);
  facts.saved = time_saved(record, totals, last_predicted_s);
  if (totals.slowest_compute > Duration::zero()) {
    facts.computing.overhead = std::max(Duration::zero(), record.elapsed - totals.slowest_compute);
  }
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
