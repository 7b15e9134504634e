#include "launch/launcher.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <charconv>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "coordinator/quarantine.h"
#include "launch/cluster_address.h"
#include "launch/cluster_part.h"
#include "launch/coordinator_process.h"
#include "launch/process_group.h"
#include "net/mpi_module.h"
#include "node/clock.h"
#include "node/evaluator_node.h"
#include "node/host.h"
#include "node/pipe.h"
#include "node/shard_node.h"
#include "node/worker_node.h"
#include "store/schema.h"

namespace drover {
namespace {

// Processes that have not ended so long after the coordinator are killed.
constexpr Duration kExitTimeout = std::chrono::seconds(3);
// With MPI a process ends only after those of all other hosts have reached the end, too.
constexpr Duration kMpiExitTimeout = std::chrono::seconds(30);
// How long members of a supervised run try to reconnect to a lost coordinator. Workers may have to
// wait for the end of a quarantine, too.
constexpr Duration kRejoinFor = std::chrono::seconds(60);
constexpr Duration kWorkerRejoinsFor = Quarantine::kLongest + kRejoinFor;
// Ctrl-C, scancel or timeout signal every process of a run at once. Only the coordinator acts on
// them and notifies the others. A process that ended by itself would count as lost, and the run
// would fail.
void leave_signals_to_the_coordinator() { std::signal(SIGTERM, SIG_IGN); }

Duration rejoin_for(const Job& job) {
  return job.cluster.supervise ? kRejoinFor : Duration::zero();
}

// The body of a shard's or a worker's process: calls `body` with a port if the transport is MPI,
// and with null otherwise. MPI is initialised here, after the fork, because a process that uses it
// must not fork.
int run_with_port(const Job& job,
                  const std::function<int(const std::shared_ptr<MessagePort>&)>& body) {
  if (job.cluster.transport != Transport::kMpi) return body(nullptr);
  leave_signals_to_the_coordinator();
  const auto port = open_mpi_port();
  if (!port) {
    spdlog::error("{}", port.error().message);
    return kExitFailed;
  }
  return body(port.value());
}

// REQUIRES: the references stay valid while the group exists, here and below.
Status start_server(ProcessGroup& processes, const Part& part, const Job& job, Role role,
                    ShardId shard) {
  const std::string name = role == Role::kShard ? "-shard-" : "-standby-";
  const std::string listen = part.shard_host.empty()
                                 ? "unix:" + socket_name(part.key) + name + std::to_string(shard)
                                 : tcp_address(part.shard_host, 0);
  return processes.add({role, shard}, SIGKILL, [&part, &job, role, shard, listen] {
    leave_signals_to_the_coordinator();
    return run_with_port(job, [&](const std::shared_ptr<MessagePort>& port) {
      return run_shard({.id = shard,
                        .role = role,
                        .key = part.key,
                        .listen = listen,
                        .coordinator = part.coordinator,
                        .sharing = sharing_of(job.cluster.transport),
                        .window_bytes = job.cluster.window,
                        .rejoin_for = rejoin_for(job),
                        .port = port});
    });
  });
}

Status start_worker(ProcessGroup& processes, const Part& part, const Job& job,
                    const WorkerFactory& factory, WorkerId worker) {
  return processes.add({Role::kWorker, worker}, SIGKILL, [&part, &job, &factory, worker] {
    return run_with_port(job, [&](const std::shared_ptr<MessagePort>& port) {
      return factory.worker({.identity = {Role::kWorker, worker, part.key, part.coordinator},
                             .own_part = job.task.partition != DataPartition::kNone,
                             .partial = job.waiting.pull != 1.0,
                             .sharing = sharing_of(job.cluster.transport),
                             .port = port,
                             .rejoin_for = worker_rejoins_for(job)});
    });
  });
}

Status start_evaluator(ProcessGroup& processes, const Part& part, const Job& job,
                       const WorkerFactory& factory) {
  return processes.add({Role::kEvaluator, 0}, SIGKILL, [&part, &job, &factory] {
    // Evaluation must not slow down training.
    [[maybe_unused]] const int niceness = ::nice(10);
    return factory.evaluator({.identity = {Role::kEvaluator, 0, part.key, part.coordinator},
                              .save_model = job.record.save_model,
                              .stop_at = job.record.stop_at,
                              .rejoin_for = rejoin_for(job)});
  });
}

// All but the coordinator.
Status start_others(ProcessGroup& processes, const Part& part, const Job& job,
                    const WorkerFactory& factory) {
  Status started = done();
  for (const ShardId shard : part.duties.shards) {
    if (started) started = start_server(processes, part, job, Role::kShard, shard);
  }
  for (const ShardId shard : part.duties.standbys) {
    if (started && job.cluster.standby)
      started = start_server(processes, part, job, Role::kStandby, shard);
  }
  for (const WorkerId worker : part.duties.workers) {
    if (started && factory.worker) started = start_worker(processes, part, job, factory, worker);
  }
  if (started && factory.evaluator && part.duties.coordinator)
    started = start_evaluator(processes, part, job, factory);
  return started;
}

// The coordinator's address for other hosts. It differs from `listening` if it listens on all
// addresses of its host.
std::string announced_address(const Part& part, const std::string& listening) {
  if (part.announced.empty()) return listening;
  uint16_t port = 0;
  std::from_chars(listening.data() + listening.rfind(':') + 1, listening.data() + listening.size(),
                  port);
  return tcp_address(part.announced, port);
}

// Starts all processes, the coordinator first, and sets part.coordinator to its real address.
Status start_all(ProcessGroup& processes, Part& part, const Job& job, const WorkerFactory& factory,
                 const RunHeader& header, int exits_fd, const Company& company,
                 const std::function<Status(const Invitation&)>& invite) {
  boost::asio::io_context loop(1);
  auto listener = Listener::open(loop, part.coordinator);
  if (!listener) return listener.error();
  const auto fd = listener.value()->duplicate();
  if (!fd) return fd.error();
  part.coordinator = announced_address(part, listener.value()->address());
  listener.value().reset();
  const auto ready = start_coordinator(processes, {.part = part,
                                                   .job = job,
                                                   .factory = factory,
                                                   .header = header,
                                                   .company = company,
                                                   .listening_fd = fd.value(),
                                                   .exits_fd = exits_fd,
                                                   .launcher = ::getpid(),
                                                   .began = clock_now()});
  // From here on only the coordinator has the listening socket, so that connecting fails when it
  // has died. A supervised run keeps it for the next coordinator process.
  if (!job.cluster.supervise) ::close(fd.value());
  if (!ready) return ready.error();
  if (!ready.value()) return done();
  // Not earlier: if the coordinator is killed before the run file is complete, another one could
  // not continue from it.
  if (job.cluster.supervise) processes.restart_killed();
  if (invite) {
    const Status invited = invite({.address = part.coordinator, .token = to_text(part.key)});
    if (!invited) return invited;
  }
  return start_others(processes, part, job, factory);
}

int status_without_coordinator(int status, const Peer& first) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  spdlog::error("lost {}: {}", name_of(first), describe_exit(status));
  return kExitFailed;
}

// Loads the TLS files, and refuses to listen for other hosts without encryption or --insecure.
Status secure(Part& part, const Job& job) {
  if (const Status loaded = use_tls(part.key, job.cluster.tls); !loaded) return loaded;
  Status may = done();
  if (part.duties.coordinator && part.coordinator.starts_with("tcp:"))
    may = may_listen(part.coordinator, !job.cluster.tls.empty(), job.cluster.insecure);
  const bool serves =
      !part.duties.shards.empty() || (job.cluster.standby && !part.duties.standbys.empty());
  if (may && serves && !part.shard_host.empty())
    may =
        may_listen(tcp_address(part.shard_host, 0), !job.cluster.tls.empty(), job.cluster.insecure);
  return may;
}

// The process whose exit status is that of a part without the coordinator; nothing: the part has no
// processes.
std::optional<Peer> first_of(const Duties& duties, const Job& job) {
  if (!duties.workers.empty()) return Peer{Role::kWorker, duties.workers.front()};
  if (!duties.shards.empty()) return Peer{Role::kShard, duties.shards.front()};
  if (!duties.standbys.empty() && job.cluster.standby)
    return Peer{Role::kStandby, duties.standbys.front()};
  return std::nullopt;
}

// Launches a part without the coordinator.
int launch_members(const Part& part, const Job& job, const WorkerFactory& factory) {
  const std::optional<Peer> first = first_of(part.duties, job);
  if (!first) return 0;
  ProcessGroup processes;
  if (const Status started = start_others(processes, part, job, factory); !started) {
    spdlog::error("{}", started.error().message);
    return kExitFailed;
  }
  // The first process is not the head of the run: when it is done, the others continue.
  if (job.cluster.supervise) processes.restart_killed(ProcessGroup::Restart::kAlways);
  return status_without_coordinator(processes.supervise(*first, -1, std::nullopt), *first);
}

// Names the scripts that have failed. Returns whether there are more than may.
bool too_many_failed(const ProcessGroup& processes, uint32_t allowed) {
  uint32_t failed = 0;
  for (const ProcessGroup::Failure& failure : processes.failures()) {
    if (failure.peer.role != Role::kWorker) continue;
    ++failed;
    spdlog::error("the script of {} failed: {}", name_of(failure.peer),
                  describe_exit(failure.status));
  }
  if (failed > allowed && allowed > 0)
    spdlog::error("{} scripts failed; --allow-failures is {}", failed, allowed);
  return failed > allowed;
}

int launch_with_coordinator(Part part, const Job& job, const WorkerFactory& factory,
                            const RunHeader& header, const Company& company,
                            const std::function<Status(const Invitation&)>& invite) {
  const auto exits = make_pipe(O_CLOEXEC | O_NONBLOCK);
  if (!exits) {
    spdlog::error("{}", exits.error().message);
    return kExitFailed;
  }
  ProcessGroup processes;
  const Status started =
      start_all(processes, part, job, factory, header, exits.value().from, company, invite);
  if (!job.cluster.supervise) ::close(exits.value().from);
  if (!started) {
    spdlog::error("{}", started.error().message);
    processes.terminate(kCoordinatorPeer);  // It closes the run file and notifies the others.
  }
  const Duration timeout =
      job.cluster.transport == Transport::kMpi ? kMpiExitTimeout : kExitTimeout;
  const int status =
      processes.supervise(kCoordinatorPeer, exits.value().to,
                          factory.may_stay && started ? std::nullopt : std::optional(timeout));
  ::close(exits.value().to);
  if (!started) return kExitFailed;
  if (!WIFEXITED(status) && processes.interrupted()) {
    // Before the coordinator handled signals, or a third time, which kills all processes.
    spdlog::error("interrupted");
    return kExitInterrupted;
  }
  if (!WIFEXITED(status)) {
    spdlog::error("lost the coordinator: {}; the record up to then is in {}", describe_exit(status),
                  job.record.run_file);
    return kExitFailed;
  }
  const int result = WEXITSTATUS(status);
  const bool failed =
      factory.failures_allowed && too_many_failed(processes, *factory.failures_allowed);
  return result == 0 && failed ? kExitFailed : result;
}

}  // namespace

Duration worker_rejoins_for(const Job& job) {
  return job.cluster.supervise ? kWorkerRejoinsFor : Duration::zero();
}

Sharing sharing_of(Transport transport) {
  if (transport == Transport::kAuto) return Sharing::kIfPossible;
  return transport == Transport::kShm ? Sharing::kMust : Sharing::kNo;
}

std::string socket_name(const RunKey& key) {
  // All users can see names of sockets, so they contain no part of the token.
  return "drover-" + to_hex(key.run);
}

WorkerFactory worker_factory_for(Task& task) {
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

int launch(const Job& job, const WorkerFactory& factory, const RunHeader& header,
           const Company& company, const std::function<Status(const Invitation&)>& invite) {
  Part part{.key = {.run = header.run_id, .token = random_token()},
            .duties = duties_of({}, job.cluster.workers, job.cluster.shards)};
  if (job.cluster.transport == Transport::kTcp) {
    part.coordinator = "tcp:" + job.cluster.listen;
    part.shard_host = job.cluster.listen.substr(0, job.cluster.listen.rfind(':'));
  } else {
    part.coordinator = "unix:" + socket_name(part.key) + "-coordinator";
  }
  return launch_part(part, job, factory, header, company, invite);
}

int launch_part(Part part, const Job& job, const WorkerFactory& factory, const RunHeader& header,
                const Company& company, const std::function<Status(const Invitation&)>& invite) {
  if (const Status safe = secure(part, job); !safe) {
    spdlog::error("{}", safe.error().message);
    return kExitFailed;
  }
  const uint64_t workers = std::max(job.cluster.workers, job.cluster.workers_max);
  if (const std::string few = too_few_files(raise_file_limit(), workers); !few.empty())
    spdlog::warn("{}", few);
  std::signal(SIGPIPE, SIG_IGN);
  if (!part.duties.coordinator) return launch_members(part, job, factory);
  return launch_with_coordinator(part, job, factory, header, company, invite);
}

}  // namespace drover
