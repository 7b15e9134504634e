#include "sim/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/numbers.h"
#include "core/quantile.h"

namespace drover {
namespace {

// Gradients over time, summed up step by step.
class Rate {
 public:
  Rate(Step steps, double overhead) : overhead_(overhead) { rates_.reserve(steps); }

  void add(const StepClose& close) { add(close.contributors, close.elapsed); }
  void add(double gradients, double elapsed) {
    const double time = overhead_ + elapsed;
    gradients_ += gradients;
    time_ += time;
    rates_.push_back(gradients / time);
  }
  double time() const { return time_; }
  double total() const { return gradients_ / time_; }
  double median() {
    const auto middle = rates_.begin() + static_cast<std::ptrdiff_t>(rates_.size() / 2);
    std::nth_element(rates_.begin(), middle, rates_.end());
    if (rates_.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(rates_.begin(), middle)) / 2.0;
  }

 private:
  const double overhead_;
  double gradients_ = 0.0;
  double time_ = 0.0;
  std::vector<double> rates_;
};

// The run-times of whoever was recorded, ascending, and who that is.
struct Recorded {
  std::vector<WorkerId> workers;
  std::vector<double> sorted;

  void read(std::span<const double> row) {
    workers.clear();
    sorted.clear();
    for (size_t worker = 0; worker < row.size(); ++worker) {
      if (std::isnan(row[worker])) continue;
      workers.push_back(static_cast<WorkerId>(worker));
      sorted.push_back(row[worker]);
    }
    std::sort(sorted.begin(), sorted.end());
  }
};

// Whose gradients were used: of those that arrived in the very moment of the close, as many as were
// still wanted, in the order of workers.
void mark_included(std::span<const double> row, const StepClose& close,
                   std::vector<bool>& included) {
  auto wanted =
      static_cast<int64_t>(close.contributors) -
      std::count_if(row.begin(), row.end(), [&](double time) { return time < close.elapsed; });
  for (size_t worker = 0; worker < row.size(); ++worker) {
    included[worker] =
        row[worker] < close.elapsed || (row[worker] == close.elapsed && wanted-- > 0);
  }
}

double least_included(const std::vector<uint64_t>& used, const std::vector<uint64_t>& recorded) {
  double least = std::numeric_limits<double>::infinity();
  for (size_t worker = 0; worker < used.size(); ++worker) {
    if (recorded[worker] == 0) continue;
    least =
        std::min(least, static_cast<double>(used[worker]) / static_cast<double>(recorded[worker]));
  }
  return least;
}

}  // namespace

Hindsight hindsight_of(const Trace& trace, double overhead) {
  Hindsight hindsight;
  Recorded recorded;
  for (Step step = 0; step < trace.steps(); ++step) {
    recorded.read(trace.row(step));
    StepClose best;
    double best_rate = 0.0;
    for (size_t i = 0; i < recorded.sorted.size(); ++i) {
      const double rate = static_cast<double>(i + 1) / (overhead + recorded.sorted[i]);
      if (rate < best_rate) continue;  // of equal ones, the one with more gradients
      best_rate = rate;
      best = {static_cast<uint32_t>(i + 1), recorded.sorted[i]};
    }
    hindsight.best.push_back(best);
    hindsight.all.push_back(
        {static_cast<uint32_t>(recorded.sorted.size()), recorded.sorted.back()});
  }
  return hindsight;
}

Result<ReplayResult> replay(const Trace& trace, const Hindsight& hindsight, Decider& decider,
                            const ReplaySettings& settings, const std::function<TimePoint()>& clock,
                            const std::function<Status(const ReplayedStep&)>& listen) {
  DROVER_CHECK(trace.steps() > settings.warmup);
  DROVER_CHECK(hindsight.best.size() == trace.steps());
  ReplayResult result;
  result.steps = trace.steps();
  result.workers = static_cast<uint32_t>(trace.workers.size());
  result.measured_steps = trace.steps() - settings.warmup;
  Rate ours(result.measured_steps, settings.overhead);
  Rate best(result.measured_steps, settings.overhead);
  Rate all(result.measured_steps, settings.overhead);
  std::vector<Duration> decisions;
  std::vector<uint64_t> used(trace.workers.size());
  std::vector<uint64_t> recorded_in(trace.workers.size());
  std::vector<bool> included(trace.workers.size());
  Recorded recorded;
  Probes probes(settings.probe, settings.seed);
  std::vector<LateArrival> late;
  std::vector<double> arrived;
  uint64_t reviews = 0;
  uint64_t contributors = 0;
  std::vector<double> times;
  double now = 0.0;
  Duration learning{};
  for (Step step = 0; step < trace.steps(); ++step) {
    recorded.read(trace.row(step));
    // A share of the work takes a share of the time, and its gradient counts as much. The shares of
    // the next step are dealt before this one has shown anything, as workers need to know them when
    // they begin.
    times.assign(trace.row(step).begin(), trace.row(step).end());
    const TimePoint asked = clock();
    if (decider.balances()) {
      for (const WorkerId worker : recorded.workers) times[worker] *= decider.share(step, worker);
      recorded.read(times);
    }
    const std::span<const double> row = times;
    Choice choice = decider.decide({.step = step,
                                    .alive = recorded.workers,
                                    .overhead = settings.overhead,
                                    .noise = settings.noise});
    decider.plan_shares(step + 1, recorded.workers);
    Duration decision = learning + (clock() - asked);
    StepClose close = close_of(choice, recorded.sorted);
    // What has happened by then is all that is told; whoever closes a step by itself is not asked.
    for (double at = review_of(choice, recorded.sorted); at < close.elapsed;
         at = std::max(review_of(choice, recorded.sorted), std::nextafter(at, HUGE_VAL))) {
      arrived.clear();
      for (const WorkerId worker : recorded.workers)
        arrived.push_back(row[worker] <= at ? row[worker] : HUGE_VAL);
      const TimePoint asked_again = clock();
      std::optional<Choice> revised =
          decider.reconsider({.step = step, .now = at, .arrived = arrived});
      decision += clock() - asked_again;
      if (step >= settings.warmup) ++reviews;
      if (!revised) break;
      choice = std::move(*revised);
      close = close_of(choice, recorded.sorted, at);
    }
    const StepTimes seen = what_was_seen(step, row, close);
    mark_included(row, close, included);
    double gradients = 0.0;
    for (const WorkerId worker : recorded.workers)
      gradients += included[worker] ? decider.share(step, worker) : 0.0;
    if (step >= settings.warmup) {
      ours.add(gradients, close.elapsed);
      contributors += close.contributors;
      best.add(hindsight.best[step]);
      all.add(hindsight.all[step]);
      decisions.push_back(decision);
      for (const WorkerId worker : recorded.workers) {
        ++recorded_in[worker];
        if (included[worker]) ++used[worker];
      }
    }
    if (listen) {
      const Status heard = listen({.step = step,
                                   .alive = static_cast<uint32_t>(recorded.workers.size()),
                                   .choice = choice,
                                   .close = close,
                                   .best = hindsight.best[step],
                                   .seen = seen,
                                   .included = included,
                                   .late = late});
      if (!heard) return heard.error();
    }
    probes.step_closed(step, now, row, close);
    now += settings.overhead + close.elapsed;
    late = probes.finished_by(now);
    const TimePoint told = clock();
    decider.learn(seen);
    for (const LateArrival& each : late) decider.learn_late(each.step, each.worker, each.run_time);
    learning = clock() - told;
  }
  result.throughput_total = ours.total();
  result.throughput_median = ours.median();
  result.oracle_share_total = ours.total() / best.total();
  result.oracle_share_median = result.throughput_median / best.median();
  result.time_vs_sync = ours.time() / all.time();
  result.cutoff_mean =
      static_cast<double>(contributors) / static_cast<double>(result.measured_steps);
  result.inclusion_min = least_included(used, recorded_in);
  result.reviews_mean = static_cast<double>(reviews) / static_cast<double>(result.measured_steps);
  result.decision_p50 = percentile(decisions, 50);
  result.decision_p99 = percentile(decisions, 99);
  return result;
}

Status check_long_enough(const Trace& trace, Step warmup) {
  if (trace.steps() > warmup) return done();
  return trace_trouble(
      trace.path, "",
      fmt::format("{} steps are to be replayed, and the first {} are the warm-up, which is not "
                  "measured: nothing is left. Try a shorter one, such as --warmup {}, or a longer "
                  "trace",
                  with_commas(trace.steps()), with_commas(warmup), trace.steps() / 4));
}

Foresight foresight_of(const Trace& trace) {
  return [&trace](Step step, std::span<const WorkerId> alive) {
    const std::span<const double> row = trace.row(step);
    std::vector<double> times;
    times.reserve(alive.size());
    for (const WorkerId worker : alive) times.push_back(row[worker]);
    return times;
  };
}

}  // namespace drover
