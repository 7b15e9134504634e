#include "sim/replay_record.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/text.h"

namespace drover {
namespace {

// Half of what 64 bits of nanoseconds hold: 146 years.
constexpr double kSecondsMax = 4.6e9;

}  // namespace

DecisionsFile::DecisionsFile(std::string path)
    : path_(std::move(path)), file_(path_, std::ios::binary) {}

Error DecisionsFile::trouble() const {
  return system_error(
      fmt::format("cannot write the decisions to '{}': {}; check the folder and the disk, or name "
                  "another file with --decisions",
                  path_, std::strerror(errno)));
}

Result<std::unique_ptr<DecisionsFile>> DecisionsFile::create(const std::string& path) {
  std::unique_ptr<DecisionsFile> made(new DecisionsFile(path));
  if (made->file_) made->file_ << "step,policy,cutoff,elapsed,oracle_cutoff,reason\n";
  if (!made->file_) return made->trouble();
  return made;
}

Status DecisionsFile::add(std::string_view policy, Step first_row, const ReplayedStep& step) {
  file_ << fmt::format("{},{},{},{},{},{}\n", first_row + step.step, csv_quoted(policy),
                       step.close.contributors, step.close.elapsed, step.best.contributors,
                       csv_quoted(step.choice.reason));
  return file_ ? done() : trouble();
}

Status DecisionsFile::close() {
  file_.close();
  return file_ ? done() : trouble();
}

Status ReplayRecorder::add(const ReplayedStep& replayed) {
  const Step step = replayed.step;
  for (const LateArrival& each : replayed.late) {
    const Status status = writer_.on_late_arrival(
        {.step = each.step, .worker = each.worker, .run_time = from_seconds(each.run_time)});
    if (!status) return status;
    ++late_;
  }
  Status status = writer_.on_decision({.step = step,
                                       .cutoff = replayed.choice.cutoff,
                                       .alive = replayed.alive,
                                       .reason = replayed.choice.reason});
  if (!status) return status;
  StepRecord record{.step = step,
                    .at = now_,
                    .elapsed = from_seconds(replayed.close.elapsed),
                    .contributors = replayed.close.contributors,
                    .late = late_,
                    .loss = std::nan(""),
                    .accuracy = std::nan("")};
  std::vector<ArrivalRecord> arrivals;
  std::vector<ArrivalRecord> late;  // at the time of the close, beyond the cutoff
  double last = 0.0;
  for (size_t i = 0; i < replayed.seen.known.size(); ++i) {
    const Known known = replayed.seen.known[i];
    if (known == Known::kNothing) continue;
    const auto worker = static_cast<WorkerId>(i);
    const double time = replayed.seen.seconds[i];
    const bool included = replayed.included[i];
    arrivals.push_back(
        {.step = step, .worker = worker, .run_time = from_seconds(time), .censored = !included});
    if (included && time > last) {
      last = time;
      record.last_worker = worker;
    }
    if (!included && known == Known::kArrived) late.push_back(arrivals.back());
  }
  status = writer_.on_step(record, arrivals);
  for (const ArrivalRecord& arrival : late) {
    if (status) status = writer_.on_late_arrival(arrival);
  }
  late_ = static_cast<uint32_t>(late.size());
  now_ += record.elapsed + from_seconds(overhead_);
  return status;
}

Status ReplayRecorder::finish(const std::string& interrupted_because) {
  return writer_.on_end(
      {.outcome = interrupted_because.empty() ? RunOutcome::kCompleted : RunOutcome::kInterrupted,
       .cause = interrupted_because.empty() ? EndCause::kCompleted : EndCause::kInterrupted,
       .reason = interrupted_because,
       .elapsed = now_});
}

Status check_can_be_saved(const Trace& trace, double overhead) {
  double total = 0.0;
  for (Step step = 0; step < trace.steps(); ++step) {
    double longest = 0.0;
    for (const double time : trace.row(step)) longest = std::fmax(longest, time);
    total += longest + overhead;
  }
  if (total <= kSecondsMax) return done();
  return trace_trouble(
      trace.path, "",
      fmt::format(
          "the replay takes {:.3g} s in all, and a run file holds at most {:.3g} s; leave out "
          "--save, or write the trace in a larger unit",
          total, kSecondsMax));
}

}  // namespace drover
