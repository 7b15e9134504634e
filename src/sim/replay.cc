#include "sim/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/quantile.h"
#include "core/text.h"

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

// The workers recorded in a step, and their run-times in ascending order.
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

// Marks the workers whose gradients were used. Of the gradients that arrived at the time of the
// close, those of the first workers are used, until the cutoff is reached.
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

// The measurements of a replay, after the warm-up.
class ReplayMeasures {
 public:
  ReplayMeasures(const Trace& trace, const ReplaySettings& settings)
      : steps_(trace.steps()),
        warmup_(settings.warmup),
        ours_(measured(), settings.overhead),
        best_(measured(), settings.overhead),
        all_(measured(), settings.overhead),
        used_(trace.workers.size()),
        recorded_(trace.workers.size()) {}

  void on_review(Step step) { reviews_ += step >= warmup_ ? 1 : 0; }

  // `gradients`: sum of the used gradients, weighted by the workers' shares of the work.
  void on_step(const ReplayedStep& step, const std::vector<WorkerId>& alive, double gradients,
               const StepClose& all, Duration decision) {
    if (step.step < warmup_) return;
    ours_.add(gradients, step.close.elapsed);
    contributors_ += step.close.contributors;
    best_.add(step.best);
    all_.add(all);
    decisions_.push_back(decision);
    for (const WorkerId worker : alive) {
      ++recorded_[worker];
      if (step.included[worker]) ++used_[worker];
    }
  }

  ReplayResult result() {
    ReplayResult result;
    result.steps = steps_;
    result.workers = static_cast<uint32_t>(used_.size());
    result.measured_steps = measured();
    result.throughput_total = ours_.total();
    result.throughput_median = ours_.median();
    result.oracle_share_total = ours_.total() / best_.total();
    result.oracle_share_median = result.throughput_median / best_.median();
    result.time_vs_sync = ours_.time() / all_.time();
    result.cutoff_mean = per_step(contributors_);
    result.inclusion_min = least_included(used_, recorded_);
    result.reviews_mean = per_step(reviews_);
    result.decision_p50 = percentile(decisions_, 50);
    result.decision_p99 = percentile(decisions_, 99);
    return result;
  }

 private:
  Step measured() const { return steps_ - warmup_; }
  double per_step(uint64_t count) const {
    return static_cast<double>(count) / static_cast<double>(measured());
  }

  const Step steps_;
  const Step warmup_;
  Rate ours_;
  Rate best_;
  Rate all_;
  std::vector<uint64_t> used_;      // by worker: steps with its gradient
  std::vector<uint64_t> recorded_;  // by worker: steps with its run-time
  std::vector<Duration> decisions_;
  uint64_t contributors_ = 0;
  uint64_t reviews_ = 0;
};

// The replay of one policy on one trace.
class Replay {
 public:
  Replay(const Trace& trace, const OracleCloses& oracle, Decider& decider,
         const ReplaySettings& settings, const std::function<TimePoint()>& clock)
      : trace_(trace),
        oracle_(oracle),
        decider_(decider),
        settings_(settings),
        clock_(clock),
        measures_(trace, settings),
        included_(trace.workers.size()),
        probes_(settings.probe, settings.seed) {}

  Status run_step(Step step, const std::function<Status(const ReplayedStep&)>& listen);
  ReplayResult result() { return measures_.result(); }

 private:
  Choice decide(Step step);
  StepClose close(Step step, Choice& choice);
  void learn(Step step, const StepTimes& seen, const StepClose& close, const Choice& choice);
  void leave_out_busy(Step step);

  const Trace& trace_;
  const OracleCloses& oracle_;
  Decider& decider_;
  const ReplaySettings& settings_;
  const std::function<TimePoint()>& clock_;
  ReplayMeasures measures_;
  Recorded recorded_;          // of the step
  std::vector<double> times_;  // of the step by worker, scaled by the workers' shares
  std::vector<double> arrived_;
  std::vector<bool> included_;
  Probes probes_;
  std::vector<LateArrival> late_;  // since the previous step
  double now_ = 0.0;
  Duration decision_{};  // how long deciding took in this step
  Duration learning_{};  // in the previous step
};

// A share of the work takes that share of the time, and its gradient counts as that share. The
// shares of a step are planned before the previous step has closed, since workers need them when
// they begin.
Choice Replay::decide(Step step) {
  const TimePoint asked = clock_();
  if (decider_.balances()) {
    for (const WorkerId worker : recorded_.workers) times_[worker] *= decider_.share(step, worker);
    recorded_.read(times_);
  }
  Choice choice = decider_.decide({.step = step,
                                   .alive = recorded_.workers,
                                   .overhead = settings_.overhead,
                                   .noise = settings_.noise,
                                   .unit = TimeUnit::kUnknown});
  decider_.plan_shares(step + 1, recorded_.workers);
  decision_ = learning_ + (clock_() - asked);
  return choice;
}

// Reviews the decision within the step as often as the choice asks for. The policy learns only what
// has happened by then; a step that has already closed is not reviewed.
StepClose Replay::close(Step step, Choice& choice) {
  StepClose close = close_of(choice, recorded_.sorted);
  for (double at = review_of(choice, recorded_.sorted); at < close.elapsed;
       at = std::max(review_of(choice, recorded_.sorted), std::nextafter(at, HUGE_VAL))) {
    arrived_.clear();
    for (const WorkerId worker : recorded_.workers)
      arrived_.push_back(times_[worker] <= at ? times_[worker] : HUGE_VAL);
    const TimePoint asked = clock_();
    std::optional<Choice> revised = decider_.reconsider(
        {.step = step, .now = at, .arrived = arrived_, .unit = TimeUnit::kUnknown});
    decision_ += clock_() - asked;
    measures_.on_review(step);
    if (!revised) break;
    revised->probes = std::move(choice.probes);
    choice = std::move(*revised);
    close = close_of(choice, recorded_.sorted, at);
  }
  return close;
}

void Replay::learn(Step step, const StepTimes& seen, const StepClose& close, const Choice& choice) {
  probes_.step_closed(step, now_, times_, close, choice.probes);
  now_ += settings_.overhead + close.elapsed;
  probes_.stop_requested(step, now_);
  late_ = probes_.finished_by(now_);
  const TimePoint began = clock_();
  decider_.learn(seen);
  for (const LateArrival& each : late_) decider_.learn_late(each.step, each.worker, each.run_time);
  learning_ = clock_() - began;
}

// A worker that still finishes an earlier step, because the policy asked for it, takes no part;
// unless no other worker would.
void Replay::leave_out_busy(Step step) {
  size_t others = 0;
  for (WorkerId worker = 0; worker < times_.size(); ++worker) {
    if (std::isnan(times_[worker])) continue;
    if (probes_.is_busy(worker, now_)) {
      times_[worker] = std::numeric_limits<double>::quiet_NaN();
    } else {
      ++others;
    }
  }
  if (others == 0) times_.assign(trace_.row(step).begin(), trace_.row(step).end());
}

Status Replay::run_step(Step step, const std::function<Status(const ReplayedStep&)>& listen) {
  times_.assign(trace_.row(step).begin(), trace_.row(step).end());
  leave_out_busy(step);
  recorded_.read(times_);
  Choice choice = decide(step);
  const StepClose closed = close(step, choice);
  const StepTimes seen = observed_times(step, times_, closed);
  mark_included(times_, closed, included_);
  double gradients = 0.0;
  for (const WorkerId worker : recorded_.workers)
    gradients += included_[worker] ? decider_.share(step, worker) : 0.0;
  const ReplayedStep replayed{.step = step,
                              .alive = static_cast<uint32_t>(recorded_.workers.size()),
                              .choice = choice,
                              .close = closed,
                              .best = oracle_.best[step],
                              .seen = seen,
                              .included = included_,
                              .late = late_};
  measures_.on_step(replayed, recorded_.workers, gradients, oracle_.all[step], decision_);
  if (listen) {
    const Status heard = listen(replayed);
    if (!heard) return heard;
  }
  learn(step, seen, closed, choice);
  return done();
}

}  // namespace

OracleCloses oracle_of(const Trace& trace, double overhead) {
  OracleCloses oracle;
  Recorded recorded;
  for (Step step = 0; step < trace.steps(); ++step) {
    recorded.read(trace.row(step));
    StepClose best;
    double best_rate = 0.0;
    for (size_t i = 0; i < recorded.sorted.size(); ++i) {
      const double rate = static_cast<double>(i + 1) / (overhead + recorded.sorted[i]);
      if (rate < best_rate) continue;  // on a tie, more gradients win
      best_rate = rate;
      best = {static_cast<uint32_t>(i + 1), recorded.sorted[i]};
    }
    oracle.best.push_back(best);
    oracle.all.push_back({static_cast<uint32_t>(recorded.sorted.size()), recorded.sorted.back()});
  }
  return oracle;
}

Result<ReplayResult> replay(const Trace& trace, const OracleCloses& oracle, Decider& decider,
                            const ReplaySettings& settings, const std::function<TimePoint()>& clock,
                            const std::function<Status(const ReplayedStep&)>& listen) {
  DROVER_CHECK(trace.steps() > settings.warmup);
  DROVER_CHECK(oracle.best.size() == trace.steps());
  Replay replay(trace, oracle, decider, settings, clock);
  for (Step step = 0; step < trace.steps(); ++step) {
    if (const Status heard = replay.run_step(step, listen); !heard) return heard.error();
  }
  return replay.result();
}

Status check_long_enough(const Trace& trace, Step warmup) {
  if (trace.steps() > warmup) return done();
  return trace_trouble(
      trace.path, "",
      fmt::format(
          "nothing is left to measure: the trace has {} steps, and the first {} are the warm-up. "
          "Use a shorter warm-up, such as --policy-warmup {}, or a longer trace",
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
