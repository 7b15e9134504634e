#include "node/launcher.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "node/cluster_address.h"
#include "node/cluster_part.h"
#include "node/coordinator_node.h"
#include "node/evaluator_node.h"
#include "node/family.h"
#include "node/host.h"
#include "node/job_machines.h"
#include "node/shard_node.h"
#include "node/worker_node.h"
#include "store/run_writer.h"
#include "store/schema.h"

namespace drover {
namespace {

constexpr const char* kCoordinatorName = "coordinator";
// After the coordinator is gone everybody leaves by themselves; who has not by then is made to.
constexpr Duration kLeavingTimeout = std::chrono::seconds(3);
// How long is waited for workers that somebody else starts, or that have much to load; who dies
// meanwhile is not waited for.
constexpr Duration kComesByItself = std::chrono::hours(24);
constexpr Duration kLoadsItself = std::chrono::minutes(10);

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

int coordinator_main(const Job& job, const RunHeader& header,
                     const CoordinatorNodeSettings& settings, int ready_fd,
                     const Company& company) {
  auto policy = policy_of(job, {}, company.fitter);
  if (!policy) {
    spdlog::error("{}", policy.error().message);
    return kExitFailed;
  }
  auto writer = RunWriter::create(job.run_file, header);
  if (!writer) {
    spdlog::error("{}", writer.error().message);
    return kExitFailed;
  }
  [[maybe_unused]] const ssize_t written = ::write(ready_fd, "r", 1);
  ::close(ready_fd);
  const auto view = company.view();
  const RunEnd end =
      run_coordinator(settings, std::move(policy).value(), {writer.value().get(), view.get()}, [&] {
        view->tick();
        return writer.value()->flush();
      });
  return exit_status_of(end.outcome);
}

// Starts the coordinator and waits until it has made the run file. False: it could not, and has
// said why.
Result<bool> start_coordinator(Family& family, const Job& job, const RunHeader& header,
                               const CoordinatorNodeSettings& settings, const Company& company) {
  const auto ready = make_pipe(O_CLOEXEC);
  if (!ready) return ready.error();
  const Status started = family.add(kCoordinatorName, kLauncherLostSignal, [&] {
    ::close(ready.value().from);
    return coordinator_main(job, header, settings, ready.value().to, company);
  });
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

Status start_others(Family& family, const Part& part, const Job& job, const Crew& crew) {
  Status started = done();
  for (const ShardId shard : part.duties.shards) {
    if (!started) return started;
    const std::string listen = part.shard_host.empty() ? "unix:" + socket_name(part.key) +
                                                             "-shard-" + std::to_string(shard)
                                                       : tcp_address(part.shard_host, 0);
    started = family.add(peer_name(Role::kShard, shard), SIGKILL, [&] {
      leave_signals_to_the_coordinator();
      return run_shard({.id = shard,
                        .key = part.key,
                        .listen = listen,
                        .coordinator = part.coordinator,
                        .sharing = sharing_of(job.transport),
                        .window_bytes = job.window});
    });
  }
  for (const WorkerId worker : part.duties.workers) {
    if (!started || !crew.worker) break;
    started = family.add(peer_name(Role::kWorker, worker), SIGKILL, [&] {
      return crew.worker({.identity = {Role::kWorker, worker, part.key, part.coordinator},
                          .own_part = job.task.partition != DataPartition::kNone,
                          .partial = job.pull != 1.0,
                          .sharing = sharing_of(job.transport)});
    });
  }
  if (!started || !crew.evaluator || !part.duties.coordinator) return started;
  return family.add(peer_name(Role::kEvaluator, 0), SIGKILL, [&] {
    // Measuring must not slow down what is measured.
    [[maybe_unused]] const int niceness = ::nice(10);
    return crew.evaluator({.identity = {Role::kEvaluator, 0, part.key, part.coordinator},
                           .save_model = job.save_model,
                           .stop_at = job.stop_at});
  });
}

Result<CoordinatorSettings> machine_of(const Part& part, const Job& job, const Crew& crew,
                                       const RunHeader& header) {
  auto machine = coordinator_settings(job);
  if (!machine) return machine;
  machine.value().evaluator = crew.evaluator != nullptr;
  machine.value().workers_bring_model = crew.brings_model;
  machine.value().join_timeout = part.join_timeout;
  machine.value().told.job = header.job;
  if (!crew.worker) machine.value().join_timeout = kComesByItself;
  if (crew.worker && crew.brings_model) machine.value().join_timeout = kLoadsItself;
  if (sharing_of(job.transport) != Sharing::kNo) machine.value().block_floats = kBlockFloatsInPlace;
  return machine;
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
  const auto machine = machine_of(part, job, crew, header);
  if (!machine) return machine.error();
  boost::asio::io_context loop(1);
  auto listener = Listener::open(loop, part.coordinator);
  if (!listener) return listener.error();
  const auto fd = listener.value()->duplicate();
  if (!fd) return fd.error();
  part.coordinator = announced_address(part, listener.value()->address());
  listener.value().reset();
  const CoordinatorNodeSettings settings{.machine = machine.value(),
                                         .key = part.key,
                                         .listening_fd = fd.value(),
                                         .exits_fd = exits_fd};
  const auto ready = start_coordinator(family, job, header, settings, company);
  // Only the coordinator's from here on: when it dies, nobody must be left waiting to be accepted.
  ::close(fd.value());
  if (!ready) return ready.error();
  if (!ready.value()) return done();
  if (invite) {
    const Status invited = invite({.address = part.coordinator, .token = to_text(part.key)});
    if (!invited) return invited;
  }
  return start_others(family, part, job, crew);
}

int status_without_coordinator(int status, const std::string& who) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  spdlog::error("lost {}: {}", who, describe_exit(status));
  return kExitFailed;
}

// Those who find the coordinator elsewhere. Interruptions are its to act on; who insists is obeyed.
int launch_members(const Part& part, const Job& job, const Crew& crew) {
  if (part.duties.workers.empty() && part.duties.shards.empty()) return 0;
  Family family;
  if (const Status started = start_others(family, part, job, crew); !started) {
    spdlog::error("{}", started.error().message);
    return kExitFailed;
  }
  const std::string first = part.duties.workers.empty()
                                ? peer_name(Role::kShard, part.duties.shards.front())
                                : peer_name(Role::kWorker, part.duties.workers.front());
  return status_without_coordinator(family.supervise(first, -1, std::nullopt), first);
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
  ::close(exits.value().from);
  if (!started) {
    spdlog::error("{}", started.error().message);
    family.terminate(kCoordinatorName);  // which closes the run file and tells the others
  }
  const int status =
      family.supervise(kCoordinatorName, exits.value().to,
                       crew.may_stay && started ? std::nullopt : std::optional(kLeavingTimeout));
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

int launch_part(const Part& part, const Job& job, const Crew& crew, const RunHeader& header,
                const Company& company, const std::function<Status(const Invitation&)>& invite) {
  raise_file_limit();
  std::signal(SIGPIPE, SIG_IGN);
  if (!part.duties.coordinator) return launch_members(part, job, crew);
  return launch_with_coordinator(part, job, crew, header, company, invite);
}

}  // namespace drover
