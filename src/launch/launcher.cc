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

// After the coordinator is gone everybody leaves by themselves; who has not by then is made to.
constexpr Duration kLeavingTimeout = std::chrono::seconds(3);
// With MPI nobody leaves before all have come to the end, on whatever host they are.
constexpr Duration kLeavingTogetherTimeout = std::chrono::seconds(30);
// How long members of a supervised run look for a coordinator that was lost. Workers may also have
// been told to stay away for a while.
constexpr Duration kRejoinFor = std::chrono::seconds(60);
constexpr Duration kWorkerRejoinsFor = Quarantine::kLongest + kRejoinFor;
// Ctrl-C, scancel or timeout reach every process of a run at once. The coordinator acts on them and
// tells the others; who left by itself would be missed first, and the run would end as failed.
void leave_signals_to_the_coordinator() { std::signal(SIGTERM, SIG_IGN); }

Duration rejoin_for(const Job& job) {
  return job.cluster.supervise ? kRejoinFor : Duration::zero();
}

// The body of a shard's or a worker's process: `live` with what its blocks travel by, if that is
// not its sockets. MPI begins here and not earlier, because who speaks it must not fork.
int live_with_port(const Job& job,
                   const std::function<int(const std::shared_ptr<MessagePort>&)>& live) {
  if (job.cluster.transport != Transport::kMpi) return live(nullptr);
  leave_signals_to_the_coordinator();
  const auto port = open_mpi_port();
  if (!port) {
    spdlog::error("{}", port.error().message);
    return kExitFailed;
  }
  return live(port.value());
}

// REQUIRES: all of these stay where they are while the group lives, here and below.
Status start_server(ProcessGroup& processes, const Part& part, const Job& job, Role role,
                    ShardId shard) {
  const std::string name = role == Role::kShard ? "-shard-" : "-standby-";
  const std::string listen = part.shard_host.empty()
                                 ? "unix:" + socket_name(part.key) + name + std::to_string(shard)
                                 : tcp_address(part.shard_host, 0);
  return processes.add({role, shard}, SIGKILL, [&part, &job, role, shard, listen] {
    leave_signals_to_the_coordinator();
    return live_with_port(job, [&](const std::shared_ptr<MessagePort>& port) {
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
    return live_with_port(job, [&](const std::shared_ptr<MessagePort>& port) {
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
    // Measuring must not slow down what is measured.
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

// What others are told of where the coordinator listens: on all addresses is none.
std::string announced_address(const Part& part, const std::string& listening) {
  if (part.announced.empty()) return listening;
  uint16_t port = 0;
  std::from_chars(listening.data() + listening.rfind(':') + 1, listening.data() + listening.size(),
                  port);
  return tcp_address(part.announced, port);
}

// Starts everything, first the coordinator. `part` is told where that really listens.
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
  // Only the coordinator's from here on: when it dies, nobody must be left waiting to be accepted;
  // unless another takes its place.
  if (!job.cluster.supervise) ::close(fd.value());
  if (!ready) return ready.error();
  if (!ready.value()) return done();
  // Not before: a coordinator that was killed while it made the run file leaves nothing that
  // another could go on with.
  if (job.cluster.supervise) processes.restart_the_killed();
  if (invite) {
    const Status invited = invite({.address = part.coordinator, .token = to_text(part.key)});
    if (!invited) return invited;
  }
  return start_others(processes, part, job, factory);
}

int status_without_coordinator(int status, const Peer& who) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  spdlog::error("lost {}: {}", name_of(who), describe_exit(status));
  return kExitFailed;
}

// Nobody listens where others on a network could hear, unless it is encrypted or the user says so.
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

// The process that stands for those of a host without the coordinator; nothing: there are none.
std::optional<Peer> first_of(const Duties& duties, const Job& job) {
  if (!duties.workers.empty()) return Peer{Role::kWorker, duties.workers.front()};
  if (!duties.shards.empty()) return Peer{Role::kShard, duties.shards.front()};
  if (!duties.standbys.empty() && job.cluster.standby)
    return Peer{Role::kStandby, duties.standbys.front()};
  return std::nullopt;
}

// Those who find the coordinator elsewhere. Interruptions are its to act on; who insists is obeyed.
int launch_members(const Part& part, const Job& job, const WorkerFactory& factory) {
  const std::optional<Peer> first = first_of(part.duties, job);
  if (!first) return 0;
  ProcessGroup processes;
  if (const Status started = start_others(processes, part, job, factory); !started) {
    spdlog::error("{}", started.error().message);
    return kExitFailed;
  }
  // Nobody here is the run's head: whoever is done first, the others go on.
  if (job.cluster.supervise) processes.restart_the_killed(ProcessGroup::Restart::kAlways);
  return status_without_coordinator(processes.supervise(*first, -1, std::nullopt), *first);
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
    processes.terminate(kCoordinatorPeer);  // which closes the run file and tells the others
  }
  const Duration leaving =
      job.cluster.transport == Transport::kMpi ? kLeavingTogetherTimeout : kLeavingTimeout;
  const int status =
      processes.supervise(kCoordinatorPeer, exits.value().to,
                          factory.may_stay && started ? std::nullopt : std::optional(leaving));
  ::close(exits.value().to);
  if (!started) return kExitFailed;
  if (!WIFEXITED(status) && processes.interrupted()) {
    // So early that the coordinator could not yet hear it, or so often that nobody was asked any
    // more.
    spdlog::error("interrupted");
    return kExitInterrupted;
  }
  if (!WIFEXITED(status)) {
    spdlog::error("lost the coordinator: {}; {} keeps what was recorded until then",
                  describe_exit(status), job.record.run_file);
    return kExitFailed;
  }
  return WEXITSTATUS(status);
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
  // Everybody can see names of sockets, so no part of the token is in them.
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
