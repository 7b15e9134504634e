#include "view/summary.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "core/event_text.h"
#include "core/quantile.h"
#include "core/text.h"
#include "store/schema.h"

namespace drover {
namespace {

StopTotals stops_of(const std::vector<AbandonRecord>& abandoned, const ComputingTotals& computing) {
  StopTotals stops{.stopped = abandoned.size()};
  Duration wasted = computing.wasted;
  std::vector<Duration> restarts;
  for (const AbandonRecord& each : abandoned) {
    wasted += each.wasted;
    restarts.push_back(each.restart);
  }
  if (!restarts.empty()) stops.restart_median = percentile(restarts, 50);
  const double all = seconds(wasted + computing.used);
  if (all > 0.0) stops.wasted_share = seconds(wasted) / all;
  return stops;
}

using nlohmann::json;

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }
json number(Duration value) { return seconds(value); }
template <typename T>
json number(const std::optional<T>& value) {
  return value ? number(*value) : json(nullptr);
}

json text_or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

// ordered_json keeps the most important keys first.
using Object = nlohmann::ordered_json;

void add_learning(const RunSummary& summary, Object& to) {
  const std::vector<EvaluationRecord>& evaluations = summary.tables.evaluations;
  const EvaluationRecord none{.loss = kUnknown, .accuracy = kUnknown};
  const EvaluationRecord& last = evaluations.empty() ? none : evaluations.back();
  to["loss"] = number(summary.sums.recent_learning().loss);
  to["test_loss"] = number(last.loss);
  to["test_accuracy"] = number(last.accuracy);
}

void add_gradients(const RunSummary& summary, Object& to) {
  const GradientTotals& gradients = summary.sums.gradients();
  to["gradients_used"] = gradients.used;
  to["gradients_late"] = gradients.late;
  to["gradients_left_behind"] = summary.dropped();
  to["gradients_refused"] = gradients.refused;
  to["outliers"] = json::array();
  for (const OutlierStatistics& each : summary.outliers) {
    to["outliers"].push_back(
        {{"worker", each.worker}, {"steps", each.steps}, {"ratio_max", each.ratio_max}});
  }
}

void add_times(const RunSummary& summary, Object& to) {
  const StepTimeTotals& times = summary.sums.step_times();
  const auto percentile_of = [](const TimeHistogram& of, uint64_t percent) {
    return of.count() > 0 ? number(of.percentile(percent)) : json(nullptr);
  };
  const bool timed = times.steps > 0;
  to["step_seconds_median"] = percentile_of(times.elapsed, 50);
  to["step_seconds_p90"] = percentile_of(times.elapsed, 90);
  to["step_overhead_seconds_median"] = percentile_of(times.overhead, 50);
  to["step_overhead_seconds_p90"] = percentile_of(times.overhead, 90);
  to["closing_seconds_median"] = percentile_of(times.closing, 50);
  to["undecided_seconds_max"] = timed ? number(times.undecided_max) : json(nullptr);
  to["undecided_share"] =
      timed ? number(static_cast<double>(times.undecided_steps) / static_cast<double>(times.steps))
            : json(nullptr);
}

void add_waiting(const RunSummary& summary, Object& to) {
  const CutoffTotals& cutoff = summary.sums.cutoff();
  const bool decided = cutoff.mean.count > 0;
  to["cutoff_mean"] = number(cutoff.mean.value());
  to["cutoff_min"] = decided ? json(cutoff.least) : json(nullptr);
  to["cutoff_max"] = decided ? json(cutoff.most) : json(nullptr);
  to["stopped"] = summary.stops.stopped;
  to["restart_seconds_median"] = number(summary.stops.restart_median);
  to["wasted_share"] = number(summary.stops.wasted_share);
  const BlockTotals& blocks = summary.sums.blocks();
  to["fresh_blocks_mean"] = number(blocks.fresh.value());
  to["fresh_blocks_min"] = blocks.fresh.count > 0 ? number(blocks.fresh_min) : json(nullptr);
  to["staleness_max"] = blocks.staleness_max;
  to["uneven_steps"] = blocks.uneven_steps;
}

void add_workers(const RunSummary& summary, Object& to) {
  to["waited_for"] = json::array();
  for (const WorkerId worker : summary.waited_for()) {
    const WorkerTotals& own = summary.sums.workers()[worker];
    const double share =
        static_cast<double>(own.last) / static_cast<double>(summary.sums.step_count());
    to["waited_for"].push_back({{"worker", worker},
                                {"share", number(share)},
                                {"left_behind", own.missed()},
                                {"inclusion", number(own.inclusion())},
                                {"run_time_seconds_median", number(own.median_run_time())},
                                {"run_time_exact", own.median_exact()}});
  }
}

void add_processes(const RunSummary& summary, Object& to) {
  to["lost"] = json::array();
  for (const EventRecord& event : summary.lost) {
    to["lost"].push_back(
        {{"peer", peer_text(event)}, {"step", event.step}, {"text", event_text(event)}});
  }
  to["memory_bytes"] = json::object();
  for (const auto& [peer, size] : summary.tables.end.memory_bytes)
    to["memory_bytes"][name_of(peer)] = size;
}

}  // namespace

Result<RunSummary> summarize(const RunReader& reader) {
  RecordedRun run;
  if (const Status read = run.read_all(reader); !read) return read.error();
  Result<std::vector<OutlierStatistics>> outliers = reader.outliers();
  if (!outliers) return outliers.error();
  const Result<std::vector<AbandonRecord>> abandoned = reader.abandoned();
  if (!abandoned) return abandoned.error();
  const Result<std::vector<EventRecord>> events = reader.events();
  if (!events) return events.error();
  RunSummary summary{.tables = run.tables(),
                     .sums = run.aggregate(),
                     .stops = {},
                     .outliers = std::move(outliers).value(),
                     .lost = {}};
  summary.stops = stops_of(abandoned.value(), summary.sums.computing());
  std::copy_if(events.value().begin(), events.value().end(), std::back_inserter(summary.lost),
               [](const EventRecord& event) { return event.kind() == EventKind::kLost; });
  return summary;
}

uint32_t RunSummary::workers() const {
  if (tables.workers_joined > 0) return tables.workers_joined;
  return static_cast<uint32_t>(
      std::count_if(sums.workers().begin(), sums.workers().end(),
                    [](const WorkerTotals& worker) { return worker.steps > 0; }));
}

uint64_t RunSummary::dropped() const {
  uint64_t all = 0;
  for (const WorkerTotals& worker : sums.workers()) all += worker.missed();
  return all;
}

std::vector<WorkerId> RunSummary::waited_for() const {
  std::vector<std::tuple<uint64_t, Duration, WorkerId>> order;  // descending, but for the worker
  for (WorkerId worker = 0; worker < sums.workers().size(); ++worker) {
    const WorkerTotals& own = sums.workers()[worker];
    if (own.steps > 0) order.emplace_back(own.last, own.median_run_time(), worker);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tuple(std::get<0>(b), std::get<1>(b), std::get<2>(a)) <
           std::tuple(std::get<0>(a), std::get<1>(a), std::get<2>(b));
  });
  std::vector<WorkerId> workers;
  for (const auto& [last, median, worker] : order) workers.push_back(worker);
  return workers;
}

std::string to_json_line(const RunSummary& summary) {
  const RunTables& tables = summary.tables;
  const auto per_second = [&](uint64_t amount) {
    return number(summary.seconds() > 0.0 ? static_cast<double>(amount) / summary.seconds()
                                          : kUnknown);
  };
  Object to;
  to["outcome"] = std::string(name_of(tables.end.outcome));
  to["reason"] = tables.end.reason;
  to["steps"] = summary.sums.step_count();
  to["seconds"] = number(summary.seconds());
  to["samples_per_second"] = per_second(summary.sums.gradients().samples);
  to["steps_per_second"] = per_second(summary.sums.step_count());
  add_learning(summary, to);
  add_gradients(summary, to);
  to["workers"] = summary.workers();
  to["shards"] = tables.shards;
  add_times(summary, to);
  add_waiting(summary, to);
  add_workers(summary, to);
  add_processes(summary, to);
  const uint64_t digest = tables.end.parameters_digest;
  to["parameters_digest"] = digest == 0 ? json(nullptr) : json(to_hex(digest));
  to["scenario"] = text_or_null(tables.setting("scenario"));
  to["run_file"] = tables.path;
  // A file name need not be UTF-8; JSON must.
  return to.dump(-1, ' ', false, Object::error_handler_t::replace);
}

}  // namespace drover
