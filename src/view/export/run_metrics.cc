#include "view/export/run_metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "store/schema.h"

namespace drover {
namespace {

constexpr std::array kStepBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                    0.5,   1.0,    2.5,   5.0,  10.0,  25.0, 60.0};
constexpr std::array kDecidingBounds = {0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0};

// A straggler's true time becomes known, if at all, within so many steps.
constexpr Step kSettledAfter = 50;

std::optional<uint64_t> count_in(std::string_view text) {
  uint64_t value = 0;
  const auto [stop, trouble] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (trouble != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

// Waiting for everybody would have taken until the last of all, not of those in time.
double saved_in(const WalkedStep& walked) {
  Duration all{};
  Duration in_time{};
  for (const RecordedArrival& each : walked.arrivals) {
    all = std::max(all, each.arrival.run_time);
    if (!each.late && !each.arrival.censored) in_time = std::max(in_time, each.arrival.run_time);
  }
  // A step that closed by its time limit, with nobody there.
  if (in_time == Duration::zero()) in_time = walked.step.elapsed;
  return std::max(0.0, seconds(all - in_time));
}

}  // namespace

void SecondsHistogram::add(double seconds) {
  const auto bound = std::lower_bound(upper_bounds.begin(), upper_bounds.end(), seconds);
  ++counts[static_cast<size_t>(bound - upper_bounds.begin())];
  sum += seconds;
}

RunMetrics::RunMetrics() : step_seconds(kStepBounds), deciding_seconds(kDecidingBounds) {}

Status MetricsReader::read_new() {
  if (!header_read_) {
    if (Status status = read_header(); !status) return status;
    header_read_ = true;
  }
  // The end first: what is recorded before it is there when it is.
  const auto end = reader_.end();
  if (!end) return end.error();
  metrics_.outcome = end.value().outcome;
  Status status = read_steps();
  if (status) status = read_saved();
  if (status) status = read_decisions();
  if (status) status = read_news();
  return status;
}

Status MetricsReader::read_header() {
  const auto header = reader_.header();
  if (!header) return header.error();
  metrics_.run_id = to_hex(header.value().run_id);
  for (const auto& [key, value] : header.value().settings) {
    if (key == "policy") metrics_.policy = value;
    if (key == "model") metrics_.model = value;
    if (key == "data") metrics_.data = value;
    if (key == "steps") metrics_.steps_planned = count_in(value);
  }
  // Workers say when they are done: nobody has planned anything.
  if (metrics_.steps_planned >= kEndless) metrics_.steps_planned.reset();
  return done();
}

Status MetricsReader::read_steps() {
  const auto peers = reader_.peers();
  if (!peers) return peers.error();
  const auto workers =
      static_cast<uint32_t>(std::max(metrics_.workers.size(), peers.value().size()));
  // A stretch at a time until one brings nothing. Usually a few steps are new; of a file that is
  // read for the first time it may be very many.
  while (true) {
    const Step before = next_;
    const Status status = walk_steps(reader_, {next_, next_ + stretch_for(workers)}, workers,
                                     [&](const WalkedStep& walked) {
                                       take(walked);
                                       return done();
                                     });
    if (!status || next_ == before) return status;
  }
}

void MetricsReader::take(const WalkedStep& walked) {
  const StepRecord& step = walked.step;
  next_ = step.step + 1;
  ++metrics_.steps;
  metrics_.samples += step.samples;
  metrics_.used += step.contributors;
  metrics_.late += step.late;
  metrics_.refused += step.refused;
  metrics_.step_seconds.add(seconds(step.elapsed));
  metrics_.deciding_seconds.add(seconds(step.undecided));
  metrics_.aggregate_seconds += seconds(step.aggregate);
  if (step.contributors > 0) {  // else it is not NaN, but unknown
    metrics_.loss = step.loss;
    metrics_.accuracy = step.accuracy;
  }
  metrics_.learning_rate = step.learning_rate;
  for (const RecordedArrival& each : walked.arrivals) {
    WorkerCounts& counts = metrics_.workers[each.arrival.worker];
    ++counts.steps;
    // A straggler is censored when its step closes, and late when it has come: either way it was
    // not in time, so that reading again is not necessary.
    counts.late += each.late || each.arrival.censored ? 1 : 0;
    counts.last += each.arrival.worker == step.last_worker ? 1 : 0;
  }
}

// Behind the rest: what a late arrival tells of a step comes after the step. A total may grow, but
// not be corrected.
Status MetricsReader::read_saved() {
  const bool ended = metrics_.outcome != RunOutcome::kRunning;
  const Step settled = ended ? next_ : next_ - std::min(next_, kSettledAfter);
  const auto workers = static_cast<uint32_t>(metrics_.workers.size());
  return walk_steps(reader_, {next_saved_, settled}, workers, [&](const WalkedStep& walked) {
    metrics_.saved_seconds += saved_in(walked);
    next_saved_ = walked.step.step + 1;
    return done();
  });
}

Status MetricsReader::read_decisions() {
  // The newest is of the open step, or of the last one that closed.
  const auto decisions = reader_.decisions(next_ - std::min<Step>(next_, 1));
  if (!decisions) return decisions.error();
  if (decisions.value().empty()) return done();
  const DecisionRecord& newest = decisions.value().back();
  metrics_.cutoff = newest.cutoff;
  metrics_.alive = newest.alive;
  metrics_.model_stale = newest.model_stale;
  return done();
}

Status MetricsReader::read_news() {
  const auto evaluations = reader_.evaluations();
  if (!evaluations) return evaluations.error();
  if (!evaluations.value().empty()) {
    metrics_.test_loss = evaluations.value().back().loss;
    metrics_.test_accuracy = evaluations.value().back().accuracy;
  }
  const auto events = reader_.events();
  if (!events) return events.error();
  metrics_.lost = static_cast<uint64_t>(
      std::count_if(events.value().begin(), events.value().end(), [](const EventRecord& event) {
        return event.kind() == EventKind::kLost && event.peer && event.peer->role == Role::kWorker;
      }));
  return done();
}

}  // namespace drover
