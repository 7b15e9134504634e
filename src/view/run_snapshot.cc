#include "view/run_snapshot.h"

#include <algorithm>

namespace drover {
namespace {

// A run is silent if its file has not changed for this time and for this many of its longest steps.
constexpr double kSilent_s = 30.0;
constexpr double kSilentSteps = 10.0;
static_assert(kRecentSteps > kDecisionsKept, "the opening of every decision's step is known");

std::string value_of(const std::vector<std::pair<std::string, std::string>>& pairs,
                     std::string_view key) {
  for (const auto& [name, value] : pairs) {
    if (name == key) return value;
  }
  return {};
}

RunState state_of(const RecordedRun& run, const RunAggregate& sums, double quiet_s) {
  double longest_s = 0.0;
  for (const RecentStep& step : sums.recent()) longest_s = std::max(longest_s, step.elapsed_s);
  switch (run.tables().end.outcome) {
    case RunOutcome::kCompleted:
      return RunState::kCompleted;
    case RunOutcome::kInterrupted:
      return RunState::kInterrupted;
    case RunOutcome::kFailed:
      return RunState::kFailed;
    case RunOutcome::kRunning:
      break;
  }
  if (quiet_s > std::max(kSilent_s, kSilentSteps * longest_s)) return RunState::kSilent;
  return sums.step_count() > 0 ? RunState::kRunning : RunState::kWaiting;
}

// The rate of the last steps if the run has not ended, else of all steps.
double steps_per_second(const RecordedRun& run, const RunAggregate& sums, double elapsed_s) {
  double rate = kUnknown;
  if (sums.step_count() > 0 && elapsed_s > 0.0)
    rate = static_cast<double>(sums.step_count()) / elapsed_s;
  if (run.ended() || sums.recent().empty()) return rate;
  const RecentStep& first = sums.recent().front();
  const RecentStep& last = sums.recent().back();
  const double took_s = last.at_s + last.elapsed_s - first.at_s;
  return took_s > 0.0 ? static_cast<double>(sums.recent().size()) / took_s : rate;
}

RunProgress progress_of(const RecordedRun& run, const RunAggregate& sums, Duration quiet) {
  const RunTables& tables = run.tables();
  const std::optional<uint64_t> planned = tables.steps_planned();
  const bool endless = !planned && !tables.setting("steps").empty();
  RunProgress progress;
  progress.step = sums.step_count();
  if (!endless) progress.steps = std::max(planned.value_or(0), progress.step);
  progress.elapsed_s = seconds(tables.end.elapsed);
  progress.quiet_s = std::max(0.0, seconds(quiet));
  progress.steps_per_s = steps_per_second(run, sums, progress.elapsed_s);
  progress.state = state_of(run, sums, progress.quiet_s);
  // The times of simulated and replayed runs are virtual, so the real time left is unknown.
  const bool real = tables.setting("scenario").empty() && tables.setting("replay").empty();
  if (progress.state == RunState::kRunning && real && planned && *planned > 0)
    progress.left_s = static_cast<double>(*progress.steps - progress.step) / progress.steps_per_s;
  return progress;
}

PageTotals totals_of(const RecordedRun& run, const RunAggregate& sums) {
  const GradientTotals& gradients = sums.gradients();
  const TimeTotals& time = sums.time();
  PageTotals totals{.samples = gradients.samples,
                    .used = gradients.used,
                    .late = gradients.late,
                    .refused = gradients.refused,
                    .censored = gradients.censored};
  const RecentLearning recent = sums.recent_learning();
  totals.loss = recent.loss;
  totals.accuracy = recent.accuracy;
  if (!run.tables().evaluations.empty()) {
    totals.test_loss = run.tables().evaluations.back().loss;
    totals.test_accuracy = run.tables().evaluations.back().accuracy;
  }
  totals.waited_s = time.waited_s;
  totals.saved_s = time.saved_s;
  totals.wait_all_s = time.waited_s + time.saved_s;
  totals.saved_exact = gradients.censored == 0;
  if (time.saved_predicted) totals.saved_about_s = time.saved_about_s;
  if (sums.step_count() == 0) return totals;
  totals.contributors_mean =
      static_cast<double>(gradients.used) / static_cast<double>(sums.step_count());
  totals.step_median_s = seconds(sums.step_times().elapsed.percentile(50));
  totals.step_p90_s = seconds(sums.step_times().elapsed.percentile(90));
  return totals;
}

std::vector<DecisionLine> decisions_of(const RecordedRun& run, const RunAggregate& sums) {
  const std::vector<DecisionRecord> all = run.decisions();
  std::vector<DecisionLine> lines;
  for (size_t i = all.size(); i > 0 && lines.size() < kDecisionsKept; --i) {
    const DecisionRecord& decision = all[i - 1];
    // The open step has no record yet. It opened when the last recorded step closed.
    double opened_s = 0.0;
    for (const RecentStep& step : sums.recent()) {
      if (step.step > decision.step) break;
      opened_s = step.at_s + (step.step < decision.step ? step.elapsed_s : 0.0);
    }
    lines.push_back({decision, opened_s + seconds(decision.at)});
  }
  return lines;
}

std::vector<WorkerLine> workers_of(const RecordedRun& run, const RunAggregate& sums) {
  std::vector<WorkerLine> lines;
  lines.reserve(sums.workers().size());
  for (WorkerId worker = 0; worker < sums.workers().size(); ++worker) {
    const WorkerTotals& own = sums.workers()[worker];
    lines.push_back({.worker = worker,
                     .node = run.tables().nodes[worker],
                     .state = run.tables().worker_states.state_of(worker),
                     .steps = own.steps,
                     .inclusion = own.inclusion(),
                     .recurrence = own.recurrence(),
                     .late = own.late,
                     .censored = own.censored,
                     .last = own.last});
    if (own.steps == 0) continue;
    lines.back().median_s = seconds(own.median_run_time());
    lines.back().median_exact = own.median_exact();
  }
  return lines;
}

std::vector<ShardLine> shards_of(const RecordedRun& run) {
  std::vector<ShardLine> lines;
  for (const double share : run.shard_busy_shares())
    lines.push_back({.shard = static_cast<ShardId>(lines.size()), .busy_share = share});
  return lines;
}

}  // namespace

std::string_view name_of(RunState state) {
  switch (state) {
    case RunState::kWaiting:
      return "waiting";
    case RunState::kRunning:
      return "running";
    case RunState::kSilent:
      return "silent";
    case RunState::kCompleted:
      return "completed";
    case RunState::kInterrupted:
      return "interrupted";
    case RunState::kFailed:
      return "failed";
  }
  return "unknown";
}

std::string RunSnapshot::setting(std::string_view key) const {
  return value_of(header.settings, key);
}
std::string RunSnapshot::environment(std::string_view key) const {
  return value_of(header.environment, key);
}

RunSnapshot snapshot_of(const RecordedRun& run, Duration quiet) {
  const RunTables& tables = run.tables();
  const RunAggregate sums = run.aggregate();
  return {.file = tables.path,
          .place = {},
          .header = tables.header,
          .end = tables.end,
          .warning = tables.warning,
          .workers = tables.workers,
          .shards = tables.shards,
          .progress = progress_of(run, sums, quiet),
          .totals = totals_of(run, sums),
          .steps = step_series(sums.steps()),
          .evaluations = tables.evaluations,
          .decisions = decisions_of(run, sums),
          .heat = heat_map(sums.heat(), run.layout()),
          .worker_lines = workers_of(run, sums),
          .shard_lines = shards_of(run),
          .events = {tables.events.rbegin(), tables.events.rend()}};
}

}  // namespace drover
