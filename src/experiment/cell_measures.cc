#include "experiment/cell_measures.h"

#include <cmath>
#include <optional>

#include "policy/catalogue.h"
#include "view/recorded_run.h"

namespace drover {
namespace {

Result<bool> is_asynchronous(const RunReader& reader) {
  const auto header = reader.header();
  if (!header) return header.error();
  for (const auto& [key, value] : header.value().settings) {
    if (key != "policy") continue;
    const auto asynchronous = asynchronous_of(value);
    return asynchronous.ok() && asynchronous.value().has_value();
  }
  return false;
}

}  // namespace

Result<CellMeasures> measure(const RunReader& reader, const Target& target) {
  const auto evaluations = reader.evaluations();
  if (!evaluations) return evaluations.error();
  const auto totals = reader.totals();
  if (!totals) return totals.error();
  const auto asynchronous = is_asynchronous(reader);
  if (!asynchronous) return asynchronous.error();

  CellMeasures cell;
  std::optional<EvaluationRecord> reached;
  for (const EvaluationRecord& each : evaluations.value()) {
    const bool accuracy = target.kind == TargetKind::kAccuracy;
    const double value = accuracy ? each.accuracy : each.loss;
    const bool better = !cell.best || (accuracy ? value > *cell.best : value < *cell.best);
    if (better && !std::isnan(value)) cell.best = value;
    if (!reached && target.reached_by(each.loss, each.accuracy)) reached = each;
  }
  RecordedRun run(reached ? reached->version : kAllSteps);
  if (const Status read = run.read_all(reader); !read) return read.error();
  const RunAggregate sums = run.aggregate();
  const RunEnd& end = run.tables().end;
  const TimeTotals& time = sums.time();
  cell.failed = end.outcome != RunOutcome::kCompleted;
  cell.reason = end.reason;
  cell.reached = reached.has_value();
  cell.trained_seconds = seconds(time.last_end - time.first_start);
  cell.seconds =
      reached ? seconds(reached->at - totals.value().first_step_start) : cell.trained_seconds;
  cell.steps = reached ? reached->version : sums.step_count();
  cell.gradients = sums.gradients().used;
  if (sums.step_count() == 0) return cell;
  cell.contributors_mean =
      static_cast<double>(cell.gradients) / static_cast<double>(sums.step_count());
  if (!asynchronous.value() && sums.computing().all_s > 0.0)
    cell.idle_share = sums.computing().idle_s / sums.computing().all_s;
  return cell;
}

}  // namespace drover
