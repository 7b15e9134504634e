#include "node/launcher.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "node/coordinator_node.h"
#include "node/evaluator_node.h"
#include "node/family.h"
#include "node/host.h"
#include "node/job_checkpoints.h"
#include "node/job_machines.h"
#include "node/shard_node.h"
#include "node/worker_node.h"
#include "store/run_writer.h"

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

struct Addresses {
  int listening_fd = -1;
  std::string coordinator;
  std::vector<std::string> shards;
};

Result<Addresses> choose_addresses(const Job& job, const std::string& run_name) {
  Addresses addresses;
  const bool tcp = job.transport == Transport::kTcp;
  boost::asio::io_context loop(1);
  auto listener =
      Listener::open(loop, tcp ? "tcp:" + job.listen : "unix:" + run_name + "-coordinator");
  if (!listener) return listener.error();
  addresses.coordinator = listener.value()->address();
  const auto fd = listener.value()->duplicate();
  if (!fd) return fd.error();
  addresses.listening_fd = fd.value();
  const std::string host = job.listen.substr(0, job.listen.rfind(':'));
  for (ShardId shard = 0; shard < job.shards; ++shard) {
    addresses.shards.push_back(tcp ? "tcp:" + host + ":0"
                                   : "unix:" + run_name + "-shard-" + std::to_string(shard));
  }
  return addresses;
}

Sharing sharing_of(Transport transport) {
  if (transport == Transport::kAuto) return Sharing::kIfPossible;
  return transport == Transport::kShm ? Sharing::kMust : Sharing::kNo;
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

Status start_others(Family& family, const Job& job, const Crew& crew, const RunKey& key,
                    const Addresses& addresses) {
  Status started = done();
  for (ShardId shard = 0; shard < job.shards && started; ++shard) {
    started = family.add(peer_name(Role::kShard, shard), SIGKILL, [&] {
      return run_shard({.id = shard,
                        .key = key,
                        .listen = addresses.shards[shard],
                        .coordinator = addresses.coordinator,
                        .sharing = sharing_of(job.transport),
                        .window_bytes = job.window});
    });
  }
  for (WorkerId worker = 0; worker < job.workers && started && crew.worker; ++worker) {
    started = family.add(peer_name(Role::kWorker, worker), SIGKILL, [&] {
      return crew.worker({.identity = {Role::kWorker, worker, key, addresses.coordinator},
                          .own_part = job.task.partition != DataPartition::kNone,
                          .partial = job.pull != 1.0,
                          .sharing = sharing_of(job.transport)});
    });
  }
  if (!started || !crew.evaluator) return started;
  return family.add(peer_name(Role::kEvaluator, 0), SIGKILL, [&] {
    // Measuring must not slow down what is measured.
    [[maybe_unused]] const int niceness = ::nice(10);
    return crew.evaluator({.identity = {Role::kEvaluator, 0, key, addresses.coordinator},
                           .save_model = job.save_model,
                           .stop_at = job.stop_at});
  });
}

Status start_all(Family& family, const Job& job, const Crew& crew, const RunHeader& header,
                 int exits_fd, const Company& company,
                 const std::function<Status(const Invitation&)>& invite) {
  auto machine = coordinator_settings(job);
  if (!machine) return machine.error();
  auto checkpoints = prepare_checkpoints(job, crew.brings_model);
  if (!checkpoints) return checkpoints.error();
  for (const std::string& news : checkpoints.value().news) spdlog::warn("{}", news);
  apply(job, checkpoints.value(), machine.value());
  machine.value().evaluator = crew.evaluator != nullptr;
  machine.value().workers_bring_model = crew.brings_model;
  if (!crew.worker) machine.value().join_timeout = kComesByItself;
  if (crew.worker && crew.brings_model) machine.value().join_timeout = kLoadsItself;
  if (sharing_of(job.transport) != Sharing::kNo) machine.value().block_floats = kBlockFloatsInPlace;
  checkpoints.value().keeping.run = header.run_id;
  const RunKey key{.run = header.run_id, .token = random_token()};
  const auto addresses = choose_addresses(job, "drover-" + key.token.substr(0, 16));
  if (!addresses) return addresses.error();
  const int listening_fd = addresses.value().listening_fd;
  const CoordinatorNodeSettings settings{.machine = machine.value(),
                                         .key = key,
                                         .listening_fd = listening_fd,
                                         .checkpoints = checkpoints.value().keeping,
                                         .exits_fd = exits_fd};
  const auto ready = start_coordinator(family, job, header, settings, company);
  // Only the coordinator's from here on: when it dies, nobody must be left waiting to be accepted.
  ::close(listening_fd);
  if (!ready) return ready.error();
  if (!ready.value()) return done();
  if (invite) {
    const Status invited =
        invite({.address = addresses.value().coordinator, .token = to_text(key)});
    if (!invited) return invited;
  }
  return start_others(family, job, crew, key, addresses.value());
}

}  // namespace

Crew crew_for(Task& task) {
  return {.worker = [&task](const WorkerSettings& settings) { return run_worker(settings, task); },
          .evaluator =
              [&task](const EvaluatorSettings& settings) { return run_evaluator(settings, task); }};
}

int launch(const Job& job, const Crew& crew, const RunHeader& header, const Company& company,
           const std::function<Status(const Invitation&)>& invite) {
  raise_file_limit();
  std::signal(SIGPIPE, SIG_IGN);
  const auto exits = make_pipe(O_CLOEXEC | O_NONBLOCK);
  if (!exits) {
    spdlog::error("{}", exits.error().message);
    return kExitFailed;
  }
  Family family;
  const Status started = start_all(family, job, crew, header, exits.value().from, company, invite);
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

}  // namespace drover
