#include "view/run_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace drover {
namespace {

// Number of steps to read at once when searching the first step.
constexpr Step kFirstStepSpan = 10'000;
constexpr uint64_t kArrivalsAtOnce = 100'000;

// Sorts by step and keeps the order within a step. Decisions are nearly always sorted already.
void sort_by_step(std::vector<DecisionRecord>& decisions) {
  const auto before = [](const DecisionRecord& a, const DecisionRecord& b) {
    return a.step < b.step;
  };
  if (std::is_sorted(decisions.begin(), decisions.end(), before)) return;
  std::vector<std::pair<Step, size_t>> order;
  for (size_t i = 0; i < decisions.size(); ++i) order.emplace_back(decisions[i].step, i);
  std::sort(order.begin(), order.end());
  std::vector<DecisionRecord> sorted;
  sorted.reserve(decisions.size());
  for (const auto& [step, place] : order) sorted.push_back(std::move(decisions[place]));
  decisions = std::move(sorted);
}

// The records of `step`, searched from `begin` in the sorted `records`. Moves `begin` behind them.
template <typename Record, typename StepOf>
std::span<const Record> take_step(const std::vector<Record>& records, size_t& begin, Step step,
                                  StepOf&& step_of) {
  while (begin < records.size() && step_of(records[begin]) < step) ++begin;
  const size_t first = begin;
  while (begin < records.size() && step_of(records[begin]) == step) ++begin;
  return std::span(records).subspan(first, begin - first);
}

}  // namespace

Result<RunStretch> read_stretch(const RunReader& reader, const StepInterval& span, bool expected) {
  RunStretch stretch{.span = span};
  // Steps are read first, because their other records were written with them or before.
  auto steps = reader.steps(span.from, span.to);
  if (!steps) return steps.error();
  stretch.steps = std::move(steps).value();
  stretch.span.to = stretch.steps.empty() ? span.from : stretch.steps.back().step + 1;
  const bool complete = stretch.span.to == span.to;
  auto arrivals = reader.arrivals(span.from, stretch.span.to);
  if (!arrivals) return arrivals.error();
  stretch.arrivals = std::move(arrivals).value();
  auto decisions = reader.decisions(span.from, complete ? span.to : kAllSteps);
  if (!decisions) return decisions.error();
  stretch.decisions = std::move(decisions).value();
  sort_by_step(stretch.decisions);
  if (!expected) return stretch;
  auto last = reader.expected_last(span.from, stretch.span.to);
  if (!last) return last.error();
  stretch.expected = std::move(last).value();
  return stretch;
}

Status walk_stretch(const RunStretch& stretch,
                    const std::function<Status(const WalkedStep&)>& visit) {
  size_t arrival = 0;
  size_t decision = 0;
  size_t expected = 0;
  for (const StepRecord& step : stretch.steps) {
    WalkedStep walked{
        .step = step,
        .arrivals = take_step(stretch.arrivals, arrival, step.step,
                              [](const RecordedArrival& each) { return each.arrival.step; }),
        .decisions = take_step(stretch.decisions, decision, step.step,
                               [](const DecisionRecord& each) { return each.step; })};
    const auto last = take_step(stretch.expected, expected, step.step,
                                [](const RunReader::ExpectedLast& each) { return each.step; });
    if (!last.empty()) walked.last_predicted_s = last.back().mean_s;
    if (Status status = visit(walked); !status) return status;
  }
  return done();
}

Result<Step> first_step(const RunReader& reader) {
  const auto totals = reader.totals();
  if (!totals) return totals.error();
  if (totals.value().steps == 0) return Step{0};
  for (Step from = 0; from < kEndless; from += kFirstStepSpan) {
    const auto steps = reader.steps(from, from + kFirstStepSpan);
    if (!steps) return steps.error();
    if (!steps.value().empty()) return steps.value().front().step;
  }
  return Step{0};
}

Result<StepInterval> recorded_steps(const RunReader& reader) {
  const auto totals = reader.totals();
  if (!totals) return totals.error();
  const Step steps = totals.value().steps;
  if (steps == 0) return StepInterval{};
  const auto first = first_step(reader);
  if (!first) return first.error();
  // A run records its steps in order. Otherwise this count would miss the last ones.
  const Step end = first.value() + steps;
  const auto last = reader.steps(end - 1, end);
  if (!last) return last.error();
  if (last.value().empty()) {
    return invalid_input(
        fmt::format("run file '{}' is incomplete: it has {} steps from step {}, but no step {}",
                    reader.path(), steps, first.value(), end - 1));
  }
  return StepInterval{first.value(), end};
}

Step stretch_for(uint32_t workers) {
  return std::max<Step>(1, kArrivalsAtOnce / std::max(1U, workers));
}

Status walk_steps(const RunReader& reader, const StepInterval& span, uint32_t workers,
                  const std::function<Status(const WalkedStep&)>& visit) {
  const Step at_once = stretch_for(workers);
  for (Step from = span.from; from < span.to; from += at_once) {
    const Step to = std::min(span.to, from + at_once);
    const auto stretch = read_stretch(reader, {from, to}, false);
    if (!stretch) return stretch.error();
    if (Status status = walk_stretch(stretch.value(), visit); !status) return status;
  }
  return done();
}

}  // namespace drover
