#include "launch/coordinator_process.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "launch/job_checkpoints.h"
#include "launch/job_machines.h"
#include "node/clock.h"
#include "node/pipe.h"
#include "store/checkpoint.h"
#include "store/run_reader.h"
#include "store/schema.h"

namespace drover {
namespace {

// How long to wait for workers that are started elsewhere, and for workers that load a model. A
// worker that dies meanwhile is not waited for.
constexpr Duration kExternalWorkersTimeout = std::chrono::hours(24);
constexpr Duration kLoadingTimeout = std::chrono::minutes(10);
// How long a run that restarts waits for its other workers once some have rejoined: a host may be
// lost. A worker that comes later takes part from then on.
constexpr Duration kRejoinTimeout = std::chrono::seconds(15);

int exit_status_of(RunOutcome outcome) {
  if (outcome == RunOutcome::kCompleted) return 0;
  return outcome == RunOutcome::kInterrupted ? kExitInterrupted : kExitFailed;
}

// The number of steps in the run file; 0 if it cannot be read.
Step steps_on_record(const std::string& run_file) {
  const auto reader = RunReader::open(run_file);
  const auto totals = reader ? reader.value().totals() : Result<RunTotals>(reader.error());
  return totals ? totals.value().steps : 0;
}

// How the run ended, if it has: a coordinator may be killed after it has recorded the end.
std::optional<RunOutcome> end_on_record(const std::string& run_file) {
  const auto reader = RunReader::open(run_file);
  if (!reader) return std::nullopt;
  const auto end = reader.value().end();
  if (!end || end.value().outcome == RunOutcome::kRunning) return std::nullopt;
  return end.value().outcome;
}

}  // namespace

Result<Prepared> prepare(const CoordinatorParts& of, const Job& job, Version before) {
  auto machine = coordinator_settings(job);
  if (!machine) return machine.error();
  auto checkpoints = prepare_checkpoints(job, of.factory.brings_model, before);
  if (!checkpoints) return checkpoints.error();
  for (const std::string& warning : checkpoints.value().warnings) spdlog::warn("{}", warning);
  CoordinatorSettings& settings = machine.value();
  apply(job, checkpoints.value(), settings);
  settings.evaluator = of.factory.evaluator != nullptr;
  settings.workers_bring_model = of.factory.brings_model;
  settings.recovers = job.cluster.supervise;
  settings.standby = job.cluster.standby;
  settings.join_timeout = of.part.join_timeout;
  settings.worker_options.job = of.header.job;
  if (!of.factory.worker) settings.join_timeout = kExternalWorkersTimeout;
  if (of.factory.worker && of.factory.brings_model) settings.join_timeout = kLoadingTimeout;
  if (sharing_of(job.cluster.transport) != Sharing::kNo)
    settings.block_floats = kBlockFloatsInPlace;
  checkpoints.value().keeping.run = of.header.run_id;
  return Prepared{std::move(machine).value(), std::move(checkpoints.value().keeping)};
}

// The checkpoint of the last step is ignored: the run still needs the evaluation and the digest of
// the final parameters, and both are made with a step.
Result<Prepared> prepare_again(const CoordinatorParts& of) {
  Job job = of.job;
  if (!job.record.checkpoint.empty()) job.record.resume = job.record.checkpoint;
  auto prepared = prepare(of, job, job.steps);
  const bool own = prepared && prepared.value().machine.resume;
  return own || of.job.record.resume.empty() ? prepared : prepare(of, of.job);
}

Status CoordinatorIncarnations::prepare_next(const std::optional<ResumeFrom>& committed) {
  if (committed) {
    prepared_->machine.resume = committed;
  } else {
    auto again = prepare_again(of_);
    if (!again) return again.error();
    prepared_ = std::move(again).value();
  }
  prepared_->machine.return_timeout = kRejoinTimeout;
  const auto& resume = prepared_->machine.resume;
  return writer_.restart_at(resume ? resume->step : 0);
}

// Takes over from a coordinator process that was killed: all state comes from the run file and from
// checkpoints.
Status CoordinatorIncarnations::take_over() {
  const Step lost_at = steps_on_record(of_.job.record.run_file);
  if (const Status ready = prepare_next(std::nullopt); !ready) return ready;
  training_since_ = of_.began;  // a lower bound: the exact time is lost with the process
  const TimePoint at = clock_now() - of_.began;
  const auto record_of = [&](EventPayload payload) {
    return EventRecord{
        .at = at, .step = lost_at, .peer = kCoordinatorPeer, .payload = std::move(payload)};
  };
  const std::array<EventRecord, 2> events = {
      record_of(event::Lost{.loss = {.cause = LossCause::kKilled}}),
      record_of(event::Restarted{.cause = event::RestartCause::kCoordinatorLost,
                                 .from = prepared_->machine.resume
                                             ? RestartPoint::kCheckpoint
                                             : RestartPoint::kBeginningNoneYet})};
  for (const EventRecord& each : events) {
    if (const Status status = writer_.on_event(each); !status) return status;
    static_cast<void>(view_.on_event(each));
  }
  return done();
}

Result<IncarnationEnd> CoordinatorIncarnations::run_next() {
  auto policy = policy_of(of_.job, {}, of_.company.fitter);
  if (!policy) return policy.error();
  prepared_->machine.before = clock_now() - of_.began;
  prepared_->machine.incarnation = static_cast<uint64_t>(clock_now().count());
  return run_coordinator({.machine = prepared_->machine,
                          .key = of_.part.key,
                          .listening_fd = of_.listening_fd,
                          .checkpoints = prepared_->checkpoints,
                          .exits_fd = of_.exits_fd,
                          .launcher = of_.launcher,
                          .training_since = training_since_},
                         std::move(policy).value(), {&writer_, &view_},
                         {.show = [&] { view_.tick(); }, .save = [&] { return writer_.flush(); }});
}

RunEnd CoordinatorIncarnations::fail(const Error& error) {
  spdlog::error("{}", error.message);
  RunEnd end{
      .outcome = RunOutcome::kFailed, .cause = EndCause::kRestartFailed, .reason = error.message};
  static_cast<void>(writer_.on_end(end));
  return end;
}

RunEnd CoordinatorIncarnations::run() {
  const InterruptionsHeld between_incarnations;
  if (!prepared_) {
    if (const Status ready = take_over(); !ready) return fail(ready.error());
  }
  for (;;) {
    const Result<IncarnationEnd> ran = run_next();
    if (!ran) return fail(ran.error());
    const IncarnationEnd& ended = ran.value();
    if (ended.end) {
      const CheckpointKeeping& kept = prepared_->checkpoints;
      if (ended.end->outcome == RunOutcome::kCompleted && !kept.dir.empty())
        static_cast<void>(prune_checkpoints(kept.dir, kept.keep));
      return *ended.end;
    }
    training_since_ = ended.training_since;
    if (const Status ready = prepare_next(ended.committed); !ready) return fail(ready.error());
  }
}

namespace {

// The first coordinator process of a run creates the run file; a further one reopens it.
int coordinator_main(const CoordinatorParts& of, std::optional<Prepared> prepared, int ready_fd) {
  const bool first = prepared.has_value();
  if (const auto ended = first ? std::nullopt : end_on_record(of.job.record.run_file)) {
    fold_log(of.job.record.run_file);  // the killed process may not have done so
    return exit_status_of(*ended);
  }
  auto writer = first ? RunWriter::create(of.job.record.run_file, of.header)
                      : RunWriter::reopen(of.job.record.run_file);
  if (!writer) {
    spdlog::error("{}", writer.error().message);
    return kExitFailed;
  }
  if (first) {
    [[maybe_unused]] const ssize_t written = ::write(ready_fd, "r", 1);
    ::close(ready_fd);
  }
  const auto view = of.company.view();
  return exit_status_of(
      CoordinatorIncarnations(of, std::move(prepared), *writer.value(), *view).run().outcome);
}

}  // namespace

Result<bool> start_coordinator(ProcessGroup& processes, const CoordinatorParts& of) {
  const auto prepared = prepare(of, of.job);
  if (!prepared) return prepared.error();
  const auto ready = make_pipe(O_CLOEXEC);
  if (!ready) return ready.error();
  const auto first = std::make_shared<bool>(true);  // as a child sees it when it is forked
  const Status started =
      processes.add(kCoordinatorPeer, kLauncherLostSignal,
                    [of, first, prepared = prepared.value(), ready = ready.value()] {
                      if (!*first) return coordinator_main(of, std::nullopt, -1);
                      ::close(ready.from);
                      return coordinator_main(of, prepared, ready.to);
                    });
  *first = false;
  ::close(ready.value().to);
  char byte = 0;
  const bool is_ready = started && ::read(ready.value().from, &byte, 1) == 1;
  ::close(ready.value().from);
  if (!started) return started.error();
  return is_ready;
}

}  // namespace drover
