#include "experiment/cell_measures.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "policy/catalogue.h"

namespace drover {
namespace {

Result<bool> runs_freely(const RunReader& reader) {
  const auto header = reader.header();
  if (!header) return header.error();
  for (const auto& [key, value] : header.value().settings) {
    if (key != "policy") continue;
    const auto free_running = free_running_of(value);
    return free_running.ok() && free_running.value().has_value();
  }
  return false;
}

// idle = sum(elapsed - compute) / sum(elapsed), over workers and steps before `end`.
Result<std::optional<double>> idle_share(const RunReader& reader,
                                         const std::vector<StepRecord>& steps, Step end) {
  std::vector<Duration> elapsed;  // by step; a run file may miss some
  for (const StepRecord& step : steps) {
    if (step.step >= elapsed.size()) elapsed.resize(step.step + 1);
    elapsed[step.step] = step.elapsed;
  }
  double idle = 0.0;
  double all = 0.0;
  const Status read = reader.for_each_arrival([&](const RecordedArrival& each) {
    const ArrivalRecord& arrival = each.arrival;
    if (arrival.step >= end || arrival.step >= elapsed.size()) return;
    const bool arrived = !arrival.censored && !each.late;
    // Who never told how long it computed cannot be judged.
    if (arrived && arrival.compute == Duration::zero()) return;
    const Duration whole = elapsed[arrival.step];
    all += seconds(whole);
    if (arrived) idle += seconds(std::max(Duration::zero(), whole - arrival.compute));
  });
  if (!read) return read.error();
  if (!(all > 0.0)) return std::optional<double>();
  return std::optional<double>(idle / all);
}

}  // namespace

Result<CellMeasures> measure(const RunReader& reader, const Target& target) {
  const auto end = reader.end();
  if (!end) return end.error();
  const auto steps = reader.steps();
  if (!steps) return steps.error();
  const auto evaluations = reader.evaluations();
  if (!evaluations) return evaluations.error();
  const auto freely = runs_freely(reader);
  if (!freely) return freely.error();

  CellMeasures cell;
  cell.failed = end.value().outcome != RunOutcome::kCompleted;
  cell.reason = end.value().reason;
  const Duration began = steps.value().empty() ? Duration::zero() : steps.value().front().at;
  Step last = kAllSteps;
  for (const EvaluationRecord& each : evaluations.value()) {
    const bool accuracy = target.kind == TargetKind::kAccuracy;
    const double value = accuracy ? each.accuracy : each.loss;
    const bool better = !cell.best || (accuracy ? value > *cell.best : value < *cell.best);
    if (better && !std::isnan(value)) cell.best = value;
    if (cell.reached || !target.reached_by(each.loss, each.accuracy)) continue;
    cell.reached = true;
    cell.seconds = seconds(each.at - began);
    last = each.version;
  }
  uint64_t counted = 0;
  for (const StepRecord& step : steps.value()) {
    if (step.step >= last) break;
    ++counted;
    cell.gradients += step.contributors;
    cell.trained_seconds = seconds(step.at + step.elapsed - began);
  }
  if (!cell.reached) cell.seconds = cell.trained_seconds;
  cell.steps = cell.reached ? last : counted;
  if (counted > 0)
    cell.contributors_mean = static_cast<double>(cell.gradients) / static_cast<double>(counted);
  if (freely.value()) return cell;
  const auto idle = idle_share(reader, steps.value(), last);
  if (!idle) return idle.error();
  cell.idle_share = idle.value();
  return cell;
}

}  // namespace drover
