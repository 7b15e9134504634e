#include "node/launcher.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "net/mpi_module.h"
#include "node/cluster_address.h"
#include "node/cluster_part.h"
#include "node/coordinator_node.h"
#include "node/evaluator_node.h"
#include "node/family.h"
#include "node/host.h"
#include "node/job_checkpoints.h"
#include "node/job_machines.h"
#include "node/shard_node.h"
#include "node/worker_node.h"
#include "server/quarantine.h"
#include "store/checkpoint.h"
#include "store/run_reader.h"
#include "store/run_writer.h"
#include "store/schema.h"

namespace drover {
namespace {

constexpr Peer kCoordinatorPeer{Role::kCoordinator, 0};
// After the coordinator is gone everybody leaves by themselves; who has not by then is made to.
constexpr Duration kLeavingTimeout = std::chrono::seconds(3);
// With MPI nobody leaves before all have come to the end, on whatever host they are.
constexpr Duration kLeavingTogetherTimeout = std::chrono::seconds(30);
// How long is waited for workers that somebody else starts, or that have much to load; who dies
// meanwhile is not waited for.
constexpr Duration kComesByItself = std::chrono::hours(24);
constexpr Duration kLoadsItself = std::chrono::minutes(10);
// How long members of a supervised run look for a coordinator that was lost. Workers may also have
// been told to stay away for a while.
constexpr Duration kRejoinFor = std::chrono::seconds(60);
constexpr Duration kWorkerRejoinsFor = Quarantine::kLongest + kRejoinFor;
// How long a run that starts over waits for workers, if some are there: a host may be gone. Who
// comes later takes part from then on.
constexpr Duration kReturnsWithin = std::chrono::seconds(15);

int exit_status_of(RunOutcome outcome) {
  if (outcome == RunOutcome::kCompleted) return 0;
  return outcome == RunOutcome::kInterrupted ? kExitInterrupted : kExitFailed;
}

// A pipe that children inherit; each end is closed with the process that holds it.
struct Pipe {
  int from = -1;
  int to = -1;
};

Result<Pipe> make_pipe(int flags) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, flags) != 0)
    return system_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  return Pipe{ends[0], ends[1]};
}

// What every life of the coordinator is made of.
struct CoordinatorPart {
  const Part& part;
  const Job& job;
  const Crew& crew;
  const RunHeader& header;
  const Company& company;
  int listening_fd = -1;
  int exits_fd = -1;
  pid_t launcher = -1;
  TimePoint began{};  // the run
};

struct Prepared {
  CoordinatorSettings machine;
  CheckpointKeeping checkpoints;
};

Result<Prepared> prepare(const CoordinatorPart& of, const Job& job, Version before = kEndless) {
  auto machine = coordinator_settings(job);
  if (!machine) return machine.error();
  auto checkpoints = prepare_checkpoints(job, of.crew.brings_model, before);
  if (!checkpoints) return checkpoints.error();
  for (const std::string& news : checkpoints.value().news) spdlog::warn("{}", news);
  CoordinatorSettings& settings = machine.value();
  apply(job, checkpoints.value(), settings);
  settings.evaluator = of.crew.evaluator != nullptr;
  settings.workers_bring_model = of.crew.brings_model;
  settings.recovers = job.supervise;
  settings.standby = job.standby;
  settings.join_timeout = of.part.join_timeout;
  settings.told.job = of.header.job;
  if (!of.crew.worker) settings.join_timeout = kComesByItself;
  if (of.crew.worker && of.crew.brings_model) settings.join_timeout = kLoadsItself;
  if (sharing_of(job.transport) != Sharing::kNo) settings.block_floats = kBlockFloatsInPlace;
  checkpoints.value().keeping.run = of.header.run_id;
  return Prepared{std::move(machine).value(), std::move(checkpoints.value().keeping)};
}

// A run that starts over goes on from its own newest checkpoint; without one, from where it began.
// That of the last step does not count: what is missing then is the evaluation and the digest of
// the parameters, and both come with a step.
Result<Prepared> prepare_again(const CoordinatorPart& of) {
  Job job = of.job;
  if (!job.checkpoint.empty()) job.resume = job.checkpoint;
  auto prepared = prepare(of, job, job.steps);
  const bool own = prepared && prepared.value().machine.resume;
  return own || of.job.resume.empty() ? prepared : prepare(of, of.job);
}

// Of a run whose coordinator was killed; 0 if it cannot be known.
Step steps_on_record(const std::string& run_file) {
  const auto reader = RunReader::open(run_file);
  const auto totals = reader ? reader.value().totals() : Result<RunTotals>(reader.error());
  return totals ? totals.value().steps : 0;
}

// One life after another, until the run has ended.
RunEnd coordinate(const CoordinatorPart& of, std::optional<Prepared> prepared, RunWriter& writer,
                  RunView& view) {
  const auto failed = [&](const Error& error) {
    spdlog::error("{}", error.message);
    RunEnd end{
        .outcome = RunOutcome::kFailed, .cause = EndCause::kRestartFailed, .reason = error.message};
    static_cast<void>(writer.on_end(end));
    return end;
  };
  const auto prepare_next = [&](const std::optional<ResumeFrom>& committed) -> Status {
    if (committed) {
      prepared->machine.resume = committed;
    } else {
      auto again = prepare_again(of);
      if (!again) return again.error();
      prepared = std::move(again).value();
    }
    prepared->machine.return_timeout = kReturnsWithin;
    const auto& resume = prepared->machine.resume;
    return writer.start_over(resume ? resume->step : 0);
  };
  const InterruptionsHeld between_lives;
  std::optional<TimePoint> training_since;
  if (!prepared) {
    const Step lost_at = steps_on_record(of.job.run_file);
    if (const Status ready = prepare_next(std::nullopt); !ready) return failed(ready.error());
    training_since = of.began;  // at the earliest: who knew it was killed
    const TimePoint at = clock_now() - of.began;
    const auto about_it = [&](EventPayload payload) {
      return EventRecord{
          .at = at, .step = lost_at, .peer = kCoordinatorPeer, .payload = std::move(payload)};
    };
    const std::array<EventRecord, 2> told = {
        about_it(event::Lost{.loss = {.cause = LossCause::kKilled}}),
        about_it(event::Restarted{.cause = event::RestartCause::kCoordinatorLost,
                                  .from = prepared->machine.resume
                                              ? RestartPoint::kCheckpoint
                                              : RestartPoint::kBeginningNoneYet})};
    for (const EventRecord& each : told) {
      if (const Status status = writer.on_event(each); !status) return failed(status.error());
      static_cast<void>(view.on_event(each));
    }
  }
  for (;;) {
    auto policy = policy_of(of.job, {}, of.company.fitter);
    if (!policy) return failed(policy.error());
    prepared->machine.before = clock_now() - of.began;
    prepared->machine.life = static_cast<uint64_t>(clock_now().count());
    const CoordinatorLife life =
        run_coordinator({.machine = prepared->machine,
                         .key = of.part.key,
                         .listening_fd = of.listening_fd,
                         .checkpoints = prepared->checkpoints,
                         .exits_fd = of.exits_fd,
                         .launcher = of.launcher,
                         .training_since = training_since},
                        std::move(policy).value(), {&writer, &view},
                        {.show = [&] { view.tick(); }, .save = [&] { return writer.flush(); }});
    if (life.end) {
      const CheckpointKeeping& kept = prepared->checkpoints;
      if (life.end->outcome == RunOutcome::kCompleted && !kept.dir.empty())
        static_cast<void>(prune_checkpoints(kept.dir, kept.keep));
      return *life.end;
    }
    training_since = life.training_since;
    if (const Status ready = prepare_next(life.committed); !ready) return failed(ready.error());
  }
}

// How the run ended, if it has: a coordinator may be killed while it only takes leave.
std::optional<RunOutcome> end_on_record(const std::string& run_file) {
  const auto reader = RunReader::open(run_file);
  if (!reader) return std::nullopt;
  const auto end = reader.value().end();
  if (!end || end.value().outcome == RunOutcome::kRunning) return std::nullopt;
  return end.value().outcome;
}

// The first coordinator of a run makes the run file; another goes on with it.
int coordinator_main(const CoordinatorPart& of, std::optional<Prepared> prepared, int ready_fd) {
  const bool first = prepared.has_value();
  if (const auto ended = first ? std::nullopt : end_on_record(of.job.run_file)) {
    fold_log(of.job.run_file);  // which the one who was killed had no time for
    return exit_status_of(*ended);
  }
  auto writer =
      first ? RunWriter::create(of.job.run_file, of.header) : RunWriter::reopen(of.job.run_file);
  if (!writer) {
    spdlog::error("{}", writer.error().message);
    return kExitFailed;
  }
  if (first) {
    [[maybe_unused]] const ssize_t written = ::write(ready_fd, "r", 1);
    ::close(ready_fd);
  }
  const auto view = of.company.view();
  return exit_status_of(coordinate(of, std::move(prepared), *writer.value(), *view).outcome);
}

// Starts the coordinator and waits until it has made the run file. False: it could not, and has
// said why.
Result<bool> start_coordinator(Family& family, const CoordinatorPart& of) {
  const auto prepared = prepare(of, of.job);
  if (!prepared) return prepared.error();
  const auto ready = make_pipe(O_CLOEXEC);
  if (!ready) return ready.error();
  const auto first = std::make_shared<bool>(true);  // as a child sees it when it is forked
  const Status started =
      family.add(kCoordinatorPeer, kLauncherLostSignal,
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

// Ctrl-C, scancel or timeout reach every process of a run at once. The coordinator acts on them and
// tells the others; who left by itself would be missed first, and the run would end as failed.
void leave_signals_to_the_coordinator() { std::signal(SIGTERM, SIG_IGN); }

Duration rejoin_for(const Job& job) { return job.supervise ? kRejoinFor : Duration::zero(); }

// The body of a shard's or a worker's process: `live` with what its blocks travel by, if that is
// not its sockets. MPI begins here and not earlier, because who speaks it must not fork.
int live_with_port(const Job& job,
                   const std::function<int(const std::shared_ptr<MessagePort>&)>& live) {
  if (job.transport != Transport::kMpi) return live(nullptr);
  leave_signals_to_the_coordinator();
  const auto port = open_mpi_port();
  if (!port) {
    spdlog::error("{}", port.error().message);
    return kExitFailed;
  }
  return live(port.value());
}

// REQUIRES: all of these stay where they are while the family lives.
Status start_others(Family& family, const Part& part, const Job& job, const Crew& crew) {
  Status started = done();
  const auto start_server = [&](Role role, ShardId shard) {
    const std::string name = role == Role::kShard ? "-shard-" : "-standby-";
    const std::string listen = part.shard_host.empty()
                                   ? "unix:" + socket_name(part.key) + name + std::to_string(shard)
                                   : tcp_address(part.shard_host, 0);
    return family.add({role, shard}, SIGKILL, [&part, &job, role, shard, listen] {
      leave_signals_to_the_coordinator();
      return live_with_port(job, [&](const std::shared_ptr<MessagePort>& port) {
        return run_shard({.id = shard,
                          .role = role,
                          .key = part.key,
                          .listen = listen,
                          .coordinator = part.coordinator,
                          .sharing = sharing_of(job.transport),
                          .window_bytes = job.window,
                          .rejoin_for = rejoin_for(job),
                          .port = port});
      });
    });
  };
  for (const ShardId shard : part.duties.shards) {
    if (started) started = start_server(Role::kShard, shard);
  }
  for (const ShardId shard : part.duties.standbys) {
    if (started && job.standby) started = start_server(Role::kStandby, shard);
  }
  for (const WorkerId worker : part.duties.workers) {
    if (!started || !crew.worker) break;
    started = family.add({Role::kWorker, worker}, SIGKILL, [&part, &job, &crew, worker] {
      return live_with_port(job, [&](const std::shared_ptr<MessagePort>& port) {
        return crew.worker({.identity = {Role::kWorker, worker, part.key, part.coordinator},
                            .own_part = job.task.partition != DataPartition::kNone,
                            .partial = job.pull != 1.0,
                            .sharing = sharing_of(job.transport),
                            .port = port,
                            .rejoin_for = worker_rejoins_for(job)});
      });
    });
  }
  if (!started || !crew.evaluator || !part.duties.coordinator) return started;
  return family.add({Role::kEvaluator, 0}, SIGKILL, [&part, &job, &crew] {
    // Measuring must not slow down what is measured.
    [[maybe_unused]] const int niceness = ::nice(10);
    return crew.evaluator({.identity = {Role::kEvaluator, 0, part.key, part.coordinator},
                           .save_model = job.save_model,
                           .stop_at = job.stop_at,
                           .rejoin_for = rejoin_for(job)});
  });
}

// What others are told of where the coordinator listens: on all addresses is none.
std::string announced_address(const Part& part, const std::string& listening) {
  if (part.announced.empty()) return listening;
  uint16_t port = 0;
  std::from_chars(listening.data() + listening.rfind(':') + 1, listening.data() + listening.size(),
                  port);
  return tcp_address(part.announced, port);
}

// Starts everything, first the coordinator. `part` is told where that really listens.
Status start_all(Family& family, Part& part, const Job& job, const Crew& crew,
                 const RunHeader& header, int exits_fd, const Company& company,
                 const std::function<Status(const Invitation&)>& invite) {
  boost::asio::io_context loop(1);
  auto listener = Listener::open(loop, part.coordinator);
  if (!listener) return listener.error();
  const auto fd = listener.value()->duplicate();
  if (!fd) return fd.error();
  part.coordinator = announced_address(part, listener.value()->address());
  listener.value().reset();
  const auto ready = start_coordinator(family, {.part = part,
                                                .job = job,
                                                .crew = crew,
                                                .header = header,
                                                .company = company,
                                                .listening_fd = fd.value(),
                                                .exits_fd = exits_fd,
                                                .launcher = ::getpid(),
                                                .began = clock_now()});
  // Only the coordinator's from here on: when it dies, nobody must be left waiting to be accepted;
  // unless another takes its place.
  if (!job.supervise) ::close(fd.value());
  if (!ready) return ready.error();
  if (!ready.value()) return done();
  // Not before: a coordinator that was killed while it made the run file leaves nothing that
  // another could go on with.
  if (job.supervise) family.restart_the_killed();
  if (invite) {
    const Status invited = invite({.address = part.coordinator, .token = to_text(part.key)});
    if (!invited) return invited;
  }
  return start_others(family, part, job, crew);
}

int status_without_coordinator(int status, const Peer& who) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  spdlog::error("lost {}: {}", name_of(who), describe_exit(status));
  return kExitFailed;
}

// Nobody listens where others on a network could hear, unless it is encrypted or the user says so.
Status secure(Part& part, const Job& job) {
  if (const Status loaded = use_tls(part.key, job.tls); !loaded) return loaded;
  Status may = done();
  if (part.duties.coordinator && part.coordinator.starts_with("tcp:"))
    may = may_listen(part.coordinator, !job.tls.empty(), job.insecure);
  const bool serves = !part.duties.shards.empty() || (job.standby && !part.duties.standbys.empty());
  if (may && serves && !part.shard_host.empty())
    may = may_listen(tcp_address(part.shard_host, 0), !job.tls.empty(), job.insecure);
  return may;
}

// Who stands for the processes of a host without the coordinator; nothing: there are none.
std::optional<Peer> first_of(const Duties& duties, const Job& job) {
  if (!duties.workers.empty()) return Peer{Role::kWorker, duties.workers.front()};
  if (!duties.shards.empty()) return Peer{Role::kShard, duties.shards.front()};
  if (!duties.standbys.empty() && job.standby) return Peer{Role::kStandby, duties.standbys.front()};
  return std::nullopt;
}

// Those who find the coordinator elsewhere. Interruptions are its to act on; who insists is obeyed.
int launch_members(const Part& part, const Job& job, const Crew& crew) {
  const std::optional<Peer> first = first_of(part.duties, job);
  if (!first) return 0;
  Family family;
  if (const Status started = start_others(family, part, job, crew); !started) {
    spdlog::error("{}", started.error().message);
    return kExitFailed;
  }
  // Nobody here is the run's head: whoever is done first, the others go on.
  if (job.supervise) family.restart_the_killed(Family::Restart::kAlways);
  return status_without_coordinator(family.supervise(*first, -1, std::nullopt), *first);
}

int launch_with_coordinator(Part part, const Job& job, const Crew& crew, const RunHeader& header,
                            const Company& company,
                            const std::function<Status(const Invitation&)>& invite) {
  const auto exits = make_pipe(O_CLOEXEC | O_NONBLOCK);
  if (!exits) {
    spdlog::error("{}", exits.error().message);
    return kExitFailed;
  }
  Family family;
  const Status started =
      start_all(family, part, job, crew, header, exits.value().from, company, invite);
  if (!job.supervise) ::close(exits.value().from);
  if (!started) {
    spdlog::error("{}", started.error().message);
    family.terminate(kCoordinatorPeer);  // which closes the run file and tells the others
  }
  const Duration leaving =
      job.transport == Transport::kMpi ? kLeavingTogetherTimeout : kLeavingTimeout;
  const int status =
      family.supervise(kCoordinatorPeer, exits.value().to,
                       crew.may_stay && started ? std::nullopt : std::optional(leaving));
  ::close(exits.value().to);
  if (!started) return kExitFailed;
  if (!WIFEXITED(status) && family.interrupted()) {
    // So early that the coordinator could not yet hear it, or so often that nobody was asked any
    // more.
    spdlog::error("interrupted");
    return kExitInterrupted;
  }
  if (!WIFEXITED(status)) {
    spdlog::error("lost the coordinator: {}; {} keeps what was recorded until then",
                  describe_exit(status), job.run_file);
    return kExitFailed;
  }
  return WEXITSTATUS(status);
}

}  // namespace

Duration worker_rejoins_for(const Job& job) {
  return job.supervise ? kWorkerRejoinsFor : Duration::zero();
}

Sharing sharing_of(Transport transport) {
  if (transport == Transport::kAuto) return Sharing::kIfPossible;
  return transport == Transport::kShm ? Sharing::kMust : Sharing::kNo;
}

std::string socket_name(const RunKey& key) {
  // Everybody can see names of sockets, so no part of the token is in them.
  return "drover-" + to_hex(key.run);
}

Crew crew_for(Task& task) {
  return {.worker =
              [&task](const WorkerSettings& settings) {
                leave_signals_to_the_coordinator();
                return run_worker(settings, task);
              },
          .evaluator =
              [&task](const EvaluatorSettings& settings) {
                leave_signals_to_the_coordinator();
                return run_evaluator(settings, task);
              }};
}

int launch(const Job& job, const Crew& crew, const RunHeader& header, const Company& company,
           const std::function<Status(const Invitation&)>& invite) {
  Part part{.key = {.run = header.run_id, .token = random_token()},
            .duties = duties_of({}, job.workers, job.shards)};
  if (job.transport == Transport::kTcp) {
    part.coordinator = "tcp:" + job.listen;
    part.shard_host = job.listen.substr(0, job.listen.rfind(':'));
  } else {
    part.coordinator = "unix:" + socket_name(part.key) + "-coordinator";
  }
  return launch_part(part, job, crew, header, company, invite);
}

int launch_part(Part part, const Job& job, const Crew& crew, const RunHeader& header,
                const Company& company, const std::function<Status(const Invitation&)>& invite) {
  if (const Status safe = secure(part, job); !safe) {
    spdlog::error("{}", safe.error().message);
    return kExitFailed;
  }
  const uint64_t workers = std::max(job.workers, job.workers_max);
  if (const std::string few = too_few_files(raise_file_limit(), workers); !few.empty())
    spdlog::warn("{}", few);
  std::signal(SIGPIPE, SIG_IGN);
  if (!part.duties.coordinator) return launch_members(part, job, crew);
  return launch_with_coordinator(part, job, crew, header, company, invite);
}

}  // namespace drover
