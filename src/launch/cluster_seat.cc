#include "launch/cluster_seat.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

#include "node/host.h"

namespace drover {
namespace {

// Only here it is decided that a run listens on addresses that other hosts can reach.
Result<ListenHost> listen_host(const Placement& placement, const ClusterOptions& options,
                               const std::string& towards) {
  ListenChoice choice = options.listen;
  if (placement.hosts == 1 && choice.bind.empty() && choice.interface.empty())
    choice.bind = "127.0.0.1";
  const bool head = towards.empty();
  return choose_listen_host(choice, head ? placement.coordinator : "", towards, host_addresses());
}

std::string host_of(const std::string& tcp) {
  const std::string rest = tcp.substr(tcp.find(':') + 1);
  std::string host = rest.substr(0, rest.rfind(':'));
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host;
}

// MPI needs a launcher that supports it, and is not encrypted.
Status fit_mpi_to(const Placement& placement, const Job& job) {
  if (!placement.mpi && !placement.of_many()) {
    return invalid_input(
        "transport (--transport): mpi needs two ranks or more, started by Open MPI's mpirun or "
        "srun --mpi=pmix; this process is the only one. Start more ranks, or use tcp or auto");
  }
  if (!placement.mpi) {
    return invalid_input(
        "transport (--transport): mpi needs ranks that were started by Open MPI's mpirun or srun "
        "--mpi=pmix, which set PMIX_RANK. Use one of these, or tcp or auto");
  }
  if (placement.hosts > 1 && !job.cluster.insecure) {
    return invalid_input(
        "transport (--transport): mpi does not encrypt blocks, not even with --tls. On a trusted "
        "network add --insecure; elsewhere use tcp with --tls");
  }
  return done();
}

std::string unix_address(const RunKey& key) { return "unix:" + socket_name(key) + "-coordinator"; }

}  // namespace

Job defaults_for(const Placement& placement) {
  Job job;
  if (placement.only || !placement.of_many()) return job;
  job.cluster.workers = placement.ranks;
  job.cluster.shards = placement.hosts;
  return job;
}

Result<Job> defaults_with_mpi(const Placement& placement, uint32_t shards) {
  if (shards >= placement.ranks) {
    return invalid_input(fmt::format(
        "transport (--transport): with mpi a rank is a shard or a worker, and {} rank{} cannot be "
        "{} shard{} and at least one worker. Start more ranks{}",
        placement.ranks, placement.ranks == 1 ? "" : "s", shards, shards == 1 ? "" : "s",
        shards == 1 ? "" : ", or add --shards 1"));
  }
  Job job;
  job.cluster.shards = shards;
  job.cluster.workers = placement.ranks - shards;
  return job;
}

Duties duties_in(const Placement& placement, const Job& job) {
  return job.cluster.transport == Transport::kMpi
             ? duties_with_mpi(placement, job.cluster.shards)
             : duties_of(placement, job.cluster.workers, job.cluster.shards);
}

bool has_others(const Placement& placement, const Job& job) {
  return placement.of_many() || job.cluster.workers_max > job.cluster.workers;
}

Status fit_to(const Placement& placement, const ClusterOptions& options, Job& job) {
  const bool listens = !options.listen.bind.empty() || !options.listen.interface.empty();
  const bool elsewhere = placement.hosts > 1 || (has_others(placement, job) && listens);
  if (job.cluster.transport == Transport::kMpi) return fit_mpi_to(placement, job);
  if (!elsewhere || job.cluster.transport == Transport::kTcp) return done();
  if (job.cluster.transport != Transport::kAuto) {
    return invalid_input(
        "transport (--transport): processes on several hosts cannot share memory or Unix sockets. "
        "Use tcp or auto");
  }
  job.cluster.transport = Transport::kTcp;
  return done();
}

std::string describe(const Placement& placement) {
  if (placement.only) return "several processes, by --role";
  return fmt::format("{} ranks on {} host{}, by {}", placement.ranks, placement.hosts,
                     placement.hosts == 1 ? "" : "s", name_of(placement.launcher));
}

Result<ClusterSeat> ClusterSeat::prepare(const Placement& placement, const ClusterOptions& options,
                                         const Job& job, RunId run) {
  std::string launch = placement.launch;
  // The launch of a run on one machine needs a name if workers may join later.
  if (!placement.of_many()) launch = "train-" + std::to_string(::getpid());
  // Launches of one host each may have equal names, and homes are often shared between hosts.
  if (placement.hosts == 1 && !launch.empty()) launch += "-" + host_name();
  auto place = find_token_place(process_environment(), options.token_file, launch);
  if (!place) return place.error();
  ClusterSeat part;
  part.placement_ = placement;
  part.options_ = options;
  part.place_ = std::move(place).value();
  part.tcp_ = job.cluster.transport == Transport::kTcp || job.cluster.transport == Transport::kMpi;
  part.part_.duties = duties_in(placement, job);
  part.part_.join_timeout = options.patience();
  if (part.part_.duties.coordinator) {
    if (const Status opened = part.open(run); !opened) return opened.error();
  }
  return part;
}

Status ClusterSeat::open(RunId run) {
  auto host = TokenHost::open(place_, run);
  if (!host) return host.error();
  host_ = std::move(host).value();
  part_.key = host_.key();
  if (!tcp_) {
    part_.coordinator = unix_address(part_.key);
    return done();
  }
  const auto listen = listen_host(placement_, options_, "");
  if (!listen) return listen.error();
  // A run that listens for workers of other hosts uses the documented port.
  const bool chosen = !options_.listen.bind.empty() || !options_.listen.interface.empty();
  const uint16_t port = placement_.port == 0 && chosen ? kClusterPort : placement_.port;
  part_.coordinator = tcp_address(listen.value().bind, port);
  if (listen.value().bind != listen.value().announce) part_.announced = listen.value().announce;
  part_.shard_host = listen.value().announce;
  return done();
}

Status ClusterSeat::join() {
  const std::string address = placement_.coordinator.empty()
                                  ? std::string()
                                  : tcp_address(placement_.coordinator, placement_.port);
  KnownAddress known;
  if (!options_.placement.coordinator.empty()) known.given = address;
  known.otherwise = [&](const RunKey& key) { return tcp_ ? address : unix_address(key); };
  const auto found = find_coordinator(place_, known, part_.join_timeout);
  if (!found) return found.error();
  part_.key = found.value().key;
  part_.coordinator = found.value().address;
  if (!tcp_) return done();
  const auto listen = listen_host(placement_, options_, host_of(part_.coordinator));
  if (!listen) return listen.error();
  part_.shard_host = listen.value().announce;
  return done();
}

int ClusterSeat::run(const Job& job, const WorkerFactory& factory, const RunHeader& header,
                     const Company& company, bool print_invitation) {
  if (!part_.duties.coordinator) {
    // Rank 0 fails with the same error; without this check the other ranks would wait for it until
    // a timeout.
    const bool elsewhere = tcp_ && placement_.hosts > 1 && !placement_.only;
    const Status may =
        elsewhere ? may_listen("tcp:0.0.0.0:0", !job.cluster.tls.empty(), job.cluster.insecure)
                  : done();
    if (!may) {
      spdlog::error("{}", may.error().message);
      return kExitFailed;
    }
    if (const Status joined = join(); !joined) {
      spdlog::error("{}", joined.error().message);
      return kExitFailed;
    }
    return launch_part(part_, job, factory, header, company);
  }
  const auto invite = [&](const Invitation& invitation) {
    const std::string& address = invitation.address;
    const Status invited = host_.invite(address);
    if (invited && print_invitation && job.cluster.workers_max > job.cluster.workers) {
      fmt::print(
          stderr, "{:<9} drover worker --join {}{}{}\n", "joiners",
          address.starts_with("tcp:") ? address.substr(4) : address,
          job.cluster.tls.empty() ? "" : " --tls " + job.cluster.tls,
          place_.file.empty() ? ", with the same DROVER_TOKEN" : " --token-file " + place_.file);
    }
    return invited;
  };
  const int status = launch_part(part_, job, factory, header, company, invite);
  host_.close();
  return status;
}

}  // namespace drover
