// A run as Chrome trace events (JSON), for ui.perfetto.dev and chrome://tracing.
//
// The format is an array of objects, whose key `ph` is the type: X a slice with ts and dur in
// microseconds, C a counter, i an instant, M the name of a track. Slices of a track must not
// overlap.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/event_text.h"
#include "core/text.h"
#include "store/trace_run.h"
#include "view/export/exports.h"
#include "view/export/out_file.h"

namespace drover {
namespace {

// "Processes" of the trace. 0 is reserved by the format.
constexpr int kCoordinator = 1;
constexpr int kShards = 2;
constexpr int kWorkers = 3;
// Tracks of the coordinator.
constexpr uint64_t kSteps = 0;
constexpr uint64_t kClosing = 1;

constexpr uint64_t kSlicesForBrowser = 3'000'000;  // about 300 MB, which browsers can still open

std::string quoted_json(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Nanoseconds as microseconds.
std::string microseconds(Duration time) {
  const auto count = static_cast<uint64_t>(std::max<int64_t>(0, time.count()));
  return fmt::format("{}.{:03}", count / 1000, count % 1000);
}

class TraceEvents {
 public:
  explicit TraceEvents(OutFile& file) : file_(file) {
    file_.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  }

  void name_process(int process, const std::string& name) {
    event(fmt::format(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":{}}})", process,
                      quoted_json(name)));
    event(fmt::format(R"("ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}})",
                      process, process));
  }
  void name_track(int process, uint64_t track, const std::string& name) {
    event(fmt::format(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})",
                      process, track + 1, quoted_json(name)));
    event(fmt::format(
        R"("ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}})",
        process, track + 1, track));
  }

  // Adds the part of the slice after the end of the track's last slice, if any. `details` is the
  // content of a JSON object.
  void slice(int process, uint64_t track, std::string_view name, Duration from, Duration to,
             std::string_view details) {
    Duration& shown = shown_[{process, track}];
    from = std::max(from, shown);
    if (to <= from) return;
    shown = to;
    ++slices_;
    event(fmt::format(R"("ph":"X","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}})",
                      name, process, track + 1, microseconds(from), microseconds(to - from),
                      details));
  }
  void counter(std::string_view name, Duration at, double value) {
    if (!std::isfinite(value)) return;  // JSON has no NaN or infinity
    event(fmt::format(R"("ph":"C","name":"{0}","pid":{1},"ts":{2},"args":{{"{0}":{3}}})", name,
                      kCoordinator, microseconds(at), value));
  }
  void instant(const std::string& name, Duration at, const std::string& text) {
    event(fmt::format(R"("ph":"i","s":"g","name":{},"pid":{},"tid":1,"ts":{},"args":{{"text":{}}})",
                      quoted_json(name), kCoordinator, microseconds(at), quoted_json(text)));
  }

  void finish() { file_.write("\n]}\n"); }
  uint64_t slices() const { return slices_; }

 private:
  void event(std::string_view inside) {
    file_.write(first_ ? "{" : ",\n{");
    file_.write(inside);
    file_.write("}");
    first_ = false;
  }

  OutFile& file_;
  bool first_ = true;
  uint64_t slices_ = 0;
  std::map<std::pair<int, uint64_t>, Duration> shown_;  // by track: the end of its last slice
};

// Draws a worker's part in a step. The record has the computing time and the run-time. The rest of
// the run-time is drawn after computing as `push`, because the record does not have the part
// before.
void draw_arrival(TraceEvents& events, const StepRecord& step, const RecordedArrival& each) {
  const ArrivalRecord& arrival = each.arrival;
  const std::string details = fmt::format(R"("step":{})", step.step);
  const Duration close = step.at + step.elapsed;
  const Duration arrived = step.at + arrival.run_time;
  const auto slice = [&](std::string_view name, Duration from, Duration to) {
    events.slice(kWorkers, arrival.worker, name, from, to, details);
  };
  if (arrival.censored) {
    slice("cut", step.at, std::max(arrived, close));
    return;
  }
  const Duration in_time = each.late ? std::min(arrived, close) : arrived;
  // A worker that did not report its computing time is drawn as computing all the time.
  const Duration computed =
      arrival.compute > Duration::zero() ? std::min(in_time, step.at + arrival.compute) : in_time;
  slice("compute", step.at, computed);
  slice("push", computed, in_time);
  if (each.late) {
    slice("late", in_time, arrived);
  } else {
    slice("wait", arrived, close);
  }
}

// Draws how a step closed. The record has this of the slowest shard.
void draw_closing(TraceEvents& events, const StepRecord& step) {
  const std::string details = fmt::format(R"("step":{})", step.step);
  const Duration close = step.at + step.elapsed;
  const Duration needed = std::max(step.at, close - step.closing);
  const Duration decided = std::min(close, needed + step.undecided);
  events.slice(kCoordinator, kClosing, "wait", step.at, needed, details);
  events.slice(kCoordinator, kClosing, "decide", needed, decided, details);
  events.slice(kCoordinator, kClosing, "update", decided, close, details);
}

// Draws the busy time of a shard at the end of the step, where most of it is. The record has only
// its duration.
void draw_shard(TraceEvents& events, const StepRecord& step, const ShardLoad& load) {
  const Duration close = step.at + step.elapsed;
  const double share =
      step.elapsed > Duration::zero() ? seconds(load.busy) / seconds(step.elapsed) : 0.0;
  events.slice(kShards, load.shard, "busy", std::max(step.at, close - load.busy), close,
               fmt::format(R"("step":{},"busy_s":{},"share of the step":{:.4g})", step.step,
                           seconds_text(load.busy), share));
}

void draw_step(TraceEvents& events, const WalkedStep& walked) {
  const StepRecord& step = walked.step;
  std::string details = fmt::format(R"("step":{},"contributors":{},"samples":{})", step.step,
                                    step.contributors, step.samples);
  if (!walked.decisions.empty()) {
    const DecisionRecord& last = walked.decisions.back();
    details += fmt::format(R"(,"cutoff":{},"alive":{},"reason":{})", last.cutoff, last.alive,
                           quoted_json(last.reason));
    events.counter("cutoff", step.at, last.cutoff);
  }
  events.slice(kCoordinator, kSteps, fmt::format("step {}", step.step), step.at,
               step.at + step.elapsed, details);
  events.counter("contributors", step.at, step.contributors);
  events.counter("loss", step.at, step.loss);
}

Status draw_events(TraceEvents& events, const RunReader& reader, const StepInterval& span) {
  const auto recorded = reader.events();
  if (!recorded) return recorded.error();
  for (const EventRecord& each : recorded.value()) {
    if (each.step < span.from || each.step > span.to) continue;
    const std::string kind(name_of(each.kind()));
    events.instant(each.peer ? kind + ": " + name_of(*each.peer) : kind, each.at, event_text(each));
  }
  const auto evaluations = reader.evaluations();
  if (!evaluations) return evaluations.error();
  for (const EvaluationRecord& each : evaluations.value()) {
    if (each.version < span.from || each.version > span.to) continue;
    events.counter("test accuracy", each.at, each.accuracy);
  }
  return done();
}

}  // namespace

Result<Exported> export_perfetto(const RunReader& reader, const ExportPlan& plan) {
  auto file = OutFile::create(plan.out, plan.force);
  if (!file) return file.error();
  TraceEvents events(file.value());
  events.name_process(kCoordinator, "coordinator");
  events.name_track(kCoordinator, kSteps, "steps");
  events.name_track(kCoordinator, kClosing, "closing (slowest shard)");
  events.name_process(kWorkers, "workers");
  std::set<ShardId> named_shards;
  std::set<WorkerId> named;
  const auto all = static_cast<double>(plan.steps.to - plan.steps.from);
  Status status =
      walk_steps(reader, plan.steps, plan.workers, [&](const WalkedStep& walked) -> Status {
        draw_step(events, walked);
        draw_closing(events, walked.step);
        const auto loads = reader.shard_loads(walked.step.step, walked.step.step + 1);
        if (!loads) return loads.error();
        for (const ShardLoad& load : loads.value()) {
          if (named_shards.empty()) events.name_process(kShards, "shards");
          if (named_shards.insert(load.shard).second)
            events.name_track(kShards, load.shard, fmt::format("shard {}", load.shard));
          draw_shard(events, walked.step, load);
        }
        for (const RecordedArrival& each : walked.arrivals) {
          const WorkerId worker = each.arrival.worker;
          if (named.insert(worker).second)
            events.name_track(kWorkers, worker, fmt::format("worker {}", worker));
          draw_arrival(events, walked.step, each);
        }
        if (Status written = file.value().status(); !written) return written;
        return plan.on_progress(static_cast<double>(walked.step.step - plan.steps.from) / all);
      });
  if (status) status = draw_events(events, reader, plan.steps);
  if (!status) return status.error();
  events.finish();
  Exported exported{.files = {plan.out}, .notes = {}};
  const auto rounds = warning_of_rounds(reader);
  if (!rounds) return rounds.error();
  if (!rounds.value().empty()) exported.notes.push_back(rounds.value());
  if (events.slices() > kSlicesForBrowser) {
    exported.notes.push_back(fmt::format(
        "{} slices may be too many for a browser; export a part of the run with --steps",
        with_commas(events.slices())));
  }
  status = file.value().complete();
  if (status) status = file.value().publish();
  if (!status) return status.error();
  return exported;
}

}  // namespace drover
