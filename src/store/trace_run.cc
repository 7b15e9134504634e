#include "store/trace_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "core/asynchronous.h"
#include "core/text.h"
#include "core/time.h"

namespace drover {
namespace {

// Results of a first pass over the arrivals, which the second pass needs to fill the matrix.
struct Extent {
  uint64_t arrivals = 0;
  uint64_t censored = 0;
  uint64_t steps = 0;        // steps with a known run-time
  uint64_t empty_steps = 0;  // steps with arrivals, but without a known run-time
  WorkerId last_worker = 0;  // the last worker with a known run-time
};

Result<Extent> extent_of(const RunReader& reader) {
  Extent extent;
  std::optional<Step> step;
  bool known = false;
  const auto finish_step = [&] {
    if (step) ++(known ? extent.steps : extent.empty_steps);
    known = false;
  };
  const Status status = reader.for_each_arrival([&](const RecordedArrival& each) {
    if (step != each.arrival.step) finish_step();
    step = each.arrival.step;
    ++extent.arrivals;
    if (each.arrival.censored) {
      ++extent.censored;
      return;
    }
    known = true;
    extent.last_worker = std::max(extent.last_worker, each.arrival.worker);
  });
  if (!status) return status.error();
  finish_step();
  return extent;
}

std::string count_of(uint64_t number, std::string_view word) {
  return fmt::format("{} {}{}", with_commas(number), word, number == 1 ? "" : "s");
}

void warn(Trace& trace, const Extent& extent) {
  if (extent.censored > 0) {
    trace.warnings.push_back(fmt::format(
        "'{}' has only lower bounds of {} of {}; without them stragglers look rarer than they were",
        trace.path, count_of(extent.censored, "run-time"), with_commas(extent.arrivals)));
  }
  if (extent.empty_steps > 0) {
    trace.warnings.push_back(
        fmt::format("left out {} without a known run-time", count_of(extent.empty_steps, "step")));
  }
}

}  // namespace

Result<std::string> warning_of_rounds(const RunReader& reader) {
  const Result<RunHeader> header = reader.header();
  if (!header) return header.error();
  for (const auto& [key, value] : header.value().settings) {
    if (key != "policy" || !is_asynchronous(value)) continue;
    return fmt::format(
        "'{}' was recorded with the policy {}, whose workers do not begin steps together: its "
        "run-times are those of rounds, and a replay of them does not predict a run",
        reader.path(), value);
  }
  return std::string();
}

Result<Trace> read_run_trace(const std::string& path) {
  const Result<RunReader> reader = RunReader::open(path);
  if (!reader) return reader.error();
  const Result<Extent> extent = extent_of(reader.value());
  if (!extent) return extent.error();
  if (extent.value().arrivals == 0) {
    return trace_trouble(path, "", "this run has no arrivals: it recorded no step to replay");
  }
  if (extent.value().steps == 0) {
    return trace_trouble(path, "", "this run has no known run-time; replay another");
  }
  if (extent.value().last_worker >= kTraceWorkersMax) {
    return trace_trouble(path, "",
                         fmt::format("it has worker {}, and at most {} workers are supported",
                                     extent.value().last_worker, kTraceWorkersMax));
  }
  Trace trace;
  trace.path = path;
  for (WorkerId worker = 0; worker <= extent.value().last_worker; ++worker) {
    trace.workers.push_back(fmt::format("w{}", worker));
  }
  if (!reader.value().warning().empty()) trace.warnings.push_back(reader.value().warning());
  const Result<std::string> rounds = warning_of_rounds(reader.value());
  if (!rounds) return rounds.error();
  if (!rounds.value().empty()) trace.warnings.push_back(rounds.value());
  warn(trace, extent.value());
  const size_t width = trace.workers.size();
  trace.times.assign(extent.value().steps * width, std::nan(""));
  std::optional<Step> step;
  size_t rows = 0;
  std::optional<Error> trouble;
  const Status status = reader.value().for_each_arrival([&](const RecordedArrival& each) {
    const ArrivalRecord& arrival = each.arrival;
    if (arrival.censored || trouble) return;
    if (step != arrival.step) ++rows;
    step = arrival.step;
    // A running run may have recorded more steps since the first pass.
    if (rows > extent.value().steps || arrival.worker >= width) return;
    const double time = seconds(arrival.run_time);
    if (const std::string what = time_trouble(time); !what.empty()) {
      trouble = trace_trouble(path, fmt::format("step {}, worker {}", arrival.step, arrival.worker),
                              fmt::format("the run-time {:g} s {}", time, what));
      return;
    }
    trace.times[(rows - 1) * width + arrival.worker] = time;
  });
  if (!status) return status.error();
  if (trouble) return *trouble;
  return trace;
}

}  // namespace drover
