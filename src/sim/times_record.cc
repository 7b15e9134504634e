#include "sim/times_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "core/check.h"
#include "core/text.h"
#include "core/time.h"
#include "sim/observed_times.h"
#include "store/trace_run.h"

namespace drover {
namespace {

TimesRecord record_of(const Trace& trace) {
  TimesRecord record;
  record.paths = {trace.path};
  record.workers = static_cast<uint32_t>(trace.workers.size());
  record.warnings = trace.warnings;
  record.steps.reserve(trace.steps());
  for (Step step = 0; step < trace.steps(); ++step) {
    // The step closed when the last worker arrived.
    StepClose close;
    for (const double time : trace.row(step)) {
      if (std::isnan(time)) continue;
      ++close.contributors;
      close.elapsed = std::max(close.elapsed, time);
    }
    record.steps.push_back(observed_times(step, trace.row(step), close));
  }
  return record;
}

void number_steps(TimesRecord& record) {
  for (size_t i = 0; i < record.steps.size(); ++i) record.steps[i].step = i;
}

}  // namespace

Result<TimesRecord> read_record(const std::string& path) {
  const Result<bool> run = is_run_file(path);
  if (!run) return run.error();
  if (run.value()) return read_run_record(path);
  const Result<Trace> trace = read_trace(path);
  if (!trace) return trace.error();
  return record_of(trace.value());
}

Result<TimesRecord> read_run_record(const std::string& path) {
  const Result<RunReader> reader = RunReader::open(path);
  if (!reader) return reader.error();
  TimesRecord record;
  record.paths = {path};
  if (!reader.value().warning().empty()) record.warnings.push_back(reader.value().warning());
  const Result<std::string> rounds = warning_of_rounds(reader.value());
  if (!rounds) return rounds.error();
  if (!rounds.value().empty()) record.warnings.push_back(rounds.value());
  std::optional<Error> trouble;
  std::optional<Step> step;
  const Status status = reader.value().for_each_arrival([&](const RecordedArrival& each) {
    const ArrivalRecord& arrival = each.arrival;
    if (trouble) return;
    const double time = seconds(arrival.run_time);
    const std::string where = fmt::format("step {}, worker {}", arrival.step, arrival.worker);
    if (arrival.worker >= kTraceWorkersMax) {
      trouble = trace_trouble(path, where,
                              fmt::format("at most {} workers are possible", kTraceWorkersMax));
      return;
    }
    // A bound of 0 s is ignored; an arrival must have a valid run-time.
    const std::string what = time_trouble(time);
    if (!arrival.censored && !what.empty()) {
      trouble = trace_trouble(path, where, fmt::format("the run-time {:g} s {}", time, what));
      return;
    }
    if (step != arrival.step) record.steps.emplace_back();
    step = arrival.step;
    record.workers = std::max(record.workers, arrival.worker + 1);
    StepTimes& times = record.steps.back();
    times.seconds.resize(std::max<size_t>(times.seconds.size(), arrival.worker + 1));
    times.known.resize(times.seconds.size(), Known::kNothing);
    if (!what.empty()) return;
    times.seconds[arrival.worker] = time;
    times.known[arrival.worker] = arrival.censored ? Known::kLonger : Known::kArrived;
    if (each.late) return;
    times.elapsed = std::max(times.elapsed, time);
    if (!arrival.censored) ++times.contributors;
  });
  if (!status) return status.error();
  if (trouble) return *trouble;
  if (record.steps.empty()) {
    return trace_trouble(path, "", "this run has no arrivals: it recorded no step");
  }
  for (StepTimes& times : record.steps) {
    times.seconds.resize(record.workers);
    times.known.resize(record.workers, Known::kNothing);
  }
  number_steps(record);
  return record;
}

Result<TimesRecord> join_records(std::vector<TimesRecord> parts) {
  DROVER_CHECK(!parts.empty());
  TimesRecord whole = std::move(parts.front());
  for (size_t i = 1; i < parts.size(); ++i) {
    TimesRecord& part = parts[i];
    if (part.workers != whole.workers) {
      return invalid_input(fmt::format(
          "'{}' has {} workers and '{}' has {}: run-times of different numbers of "
          "workers cannot be joined. Use runs with equal numbers of workers, or only one run",
          whole.paths.front(), with_commas(whole.workers), part.paths.front(),
          with_commas(part.workers)));
    }
    std::move(part.paths.begin(), part.paths.end(), std::back_inserter(whole.paths));
    std::move(part.steps.begin(), part.steps.end(), std::back_inserter(whole.steps));
    std::move(part.warnings.begin(), part.warnings.end(), std::back_inserter(whole.warnings));
  }
  number_steps(whole);
  return whole;
}

Status keep_steps(TimesRecord& record, const StepRange& range) {
  const Result<Step> to = end_of(range, record.steps.size(), record.paths.front());
  if (!to) return to.error();
  record.steps.erase(record.steps.begin() + static_cast<ptrdiff_t>(to.value()), record.steps.end());
  record.steps.erase(record.steps.begin(),
                     record.steps.begin() + static_cast<ptrdiff_t>(range.from));
  number_steps(record);
  return done();
}

}  // namespace drover
