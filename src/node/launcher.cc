#include "node/launcher.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "node/clock.h"
#include "node/coordinator_node.h"
#include "node/evaluator_node.h"
#include "node/host.h"
#include "node/log.h"
#include "node/shard_node.h"
#include "node/worker_node.h"
#include "store/run_writer.h"

namespace drover {
namespace {

// After the coordinator is gone everybody leaves by themselves; who has not by then is made to.
constexpr Duration kLeavingTimeout = std::chrono::seconds(3);

int exit_status_of(RunOutcome outcome) {
  if (outcome == RunOutcome::kCompleted) return 0;
  return outcome == RunOutcome::kInterrupted ? kExitInterrupted : kExitFailed;
}

std::string describe_exit(int status) {
  if (WIFSIGNALED(status)) {
    return "killed by signal " + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) + ")";
  }
  return "exited with status " + std::to_string(WEXITSTATUS(status));
}

// The processes of a run and their signals, from the launcher's side.
class Family {
 public:
  Family() {
    sigemptyset(&watched_);
    for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&watched_, number);
    sigprocmask(SIG_BLOCK, &watched_, &before_);
  }
  ~Family() {
    kill_all();
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

  // Forks a child that runs `body` and exits with its result.
  template <typename Body>
  Status add(const std::string& name, int signal_if_orphaned, Body&& body) {
    const pid_t launcher = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) {
      return system_error("cannot start " + name + ": " + std::strerror(errno) +
                          ". Try fewer workers, or raise the limit on processes (ulimit -u).");
    }
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, signal_if_orphaned);
      if (::getppid() != launcher) ::_exit(kExitFailed);
      ::prctl(PR_SET_NAME, ("drover " + name).c_str());
      // Ctrl-C reaches all processes of a terminal at once; only the coordinator acts on it, and tells the others.
      std::signal(SIGINT, SIG_IGN);
      std::signal(SIGHUP, SIG_IGN);
      sigprocmask(SIG_SETMASK, &before_, nullptr);
      set_log_name(name);
      // Not exit(): what the launcher registered to be done at its end is not the child's to do.
      const int status = body();
      ::fflush(nullptr);
      ::_exit(status);
    }
    children_[pid] = name;
    return done();
  }

  // Waits until all children are gone; returns the coordinator's wait status. Tells `exits_fd` who ended how.
  int supervise(pid_t coordinator, int exits_fd) {
    int coordinator_status = 0;
    std::optional<TimePoint> deadline;
    while (!children_.empty()) {
      const timespec patience{.tv_sec = 0, .tv_nsec = 200'000'000};
      const int number = sigtimedwait(&watched_, nullptr, &patience);
      if (number == SIGINT || number == SIGTERM || number == SIGHUP) {
        ++interrupts_;
        if (interrupts_ == 1 && children_.contains(coordinator)) ::kill(coordinator, SIGTERM);
        if (interrupts_ == 3) kill_all();  // somebody insists
      }
      int status = 0;
      for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
        const std::string line = children_[pid] + ": " + describe_exit(status) + "\n";
        children_.erase(pid);
        if (pid == coordinator) {
          coordinator_status = status;
          deadline = clock_now() + kLeavingTimeout;
        } else {
          // A full pipe or a coordinator that is gone loses only this remark.
          [[maybe_unused]] const ssize_t written = ::write(exits_fd, line.data(), line.size());
        }
      }
      if (deadline && clock_now() > *deadline) kill_all();
    }
    return coordinator_status;
  }


  pid_t find(const std::string& name) const {
    const auto found =
        std::find_if(children_.begin(), children_.end(), [&](const auto& child) { return child.second == name; });
    return found == children_.end() ? 0 : found->first;
  }

  bool interrupted() const { return interrupts_ > 0; }

  void kill_all() {
    for (const auto& [pid, name] : children_) ::kill(pid, SIGKILL);
  }

 private:
  sigset_t watched_{};
  sigset_t before_{};
  std::map<pid_t, std::string> children_;
  int interrupts_ = 0;
};

struct Addresses {
  int listening_fd = -1;
  std::string coordinator;
  std::vector<std::string> shards;
};

Result<Addresses> choose_addresses(const Job& job, const std::string& run_name) {
  Addresses addresses;
  const bool tcp = job.transport == Transport::kTcp;
  boost::asio::io_context loop(1);
  auto listener = Listener::open(loop, tcp ? "tcp:" + job.listen : "unix:" + run_name + "-coordinator");
  if (!listener) return listener.error();
  addresses.coordinator = listener.value()->address();
  const auto fd = listener.value()->duplicate();
  if (!fd) return fd.error();
  addresses.listening_fd = fd.value();
  const std::string host = job.listen.substr(0, job.listen.rfind(':'));
  for (ShardId shard = 0; shard < job.shards; ++shard) {
    addresses.shards.push_back(tcp ? "tcp:" + host + ":0" : "unix:" + run_name + "-shard-" + std::to_string(shard));
  }
  return addresses;
}

int coordinator_main(const Job& job, const RunHeader& header, const CoordinatorNodeSettings& settings,
                     const std::function<std::unique_ptr<RunView>()>& make_view) {
  auto writer = RunWriter::create(job.run_file, header);
  if (!writer) {
    spdlog::error("{}", writer.error().message);
    return kExitFailed;
  }
  const auto view = make_view();
  const RunEnd end = run_coordinator(settings, {writer.value().get(), view.get()}, [&] {
    view->tick();
    return writer.value()->flush();
  });
  return exit_status_of(end.outcome);
}

CoordinatorNodeSettings coordinator_settings(const Job& job, const RunKey& key, int listening_fd, int exits_fd) {
  return {.machine = {.workers = job.workers,
                      .shards = job.shards,
                      .steps = job.steps,
                      .deterministic = job.deterministic,
                      .evaluator = true,
                      .evaluate_every = job.evaluate_every,
                      .optimizer = job.optimizer,
                      .schedule = job.schedule},
          .key = key,
          .listening_fd = listening_fd,
          .exits_fd = exits_fd};
}

Status start_all(Family& family, const Job& job, Task& task, const RunHeader& header, const RunKey& key,
                 const Addresses& addresses, int exits_fd,
                 const std::function<std::unique_ptr<RunView>()>& make_view) {
  Status started = family.add("coordinator", SIGTERM, [&] {
    return coordinator_main(job, header, coordinator_settings(job, key, addresses.listening_fd, exits_fd), make_view);
  });
  for (ShardId shard = 0; shard < job.shards && started; ++shard) {
    started = family.add(peer_name(Role::kShard, shard), SIGKILL, [&] {
      return run_shard({.id = shard, .key = key, .listen = addresses.shards[shard], .coordinator = addresses.coordinator});
    });
  }
  for (WorkerId worker = 0; worker < job.workers && started; ++worker) {
    started = family.add(peer_name(Role::kWorker, worker), SIGKILL, [&] {
      return run_worker({.identity = {Role::kWorker, worker, key, addresses.coordinator},
                         .workers = job.workers,
                         .batch = job.batch,
                         .seed = job.task.seed,
                         .slow = job.slow},
                        task);
    });
  }
  if (!started) return started;
  return family.add(peer_name(Role::kEvaluator, 0), SIGKILL, [&] {
    // Measuring must not slow down what is measured.
    [[maybe_unused]] const int niceness = ::nice(10);
    return run_evaluator({.identity = {Role::kEvaluator, 0, key, addresses.coordinator}, .save_model = job.save_model},
                         task);
  });
}

}  // namespace

int launch(const Job& job, Task& task, const RunHeader& header,
           const std::function<std::unique_ptr<RunView>()>& make_view) {
  raise_file_limit();
  std::signal(SIGPIPE, SIG_IGN);
  const RunKey key{.run = header.run_id, .token = random_token()};
  const auto addresses = choose_addresses(job, "drover-" + key.token.substr(0, 16));
  if (!addresses) {
    spdlog::error("{}", addresses.error().message);
    return kExitFailed;
  }
  int exits[2] = {-1, -1};
  if (::pipe2(exits, O_CLOEXEC | O_NONBLOCK) != 0) {
    spdlog::error("cannot make a pipe: {}", std::strerror(errno));
    return kExitFailed;
  }

  Family family;
  const Status started = start_all(family, job, task, header, key, addresses.value(), exits[0], make_view);
  ::close(addresses.value().listening_fd);
  ::close(exits[0]);
  if (!started) {
    spdlog::error("{}", started.error().message);
    family.kill_all();
  }
  const int status = family.supervise(family.find("coordinator"), exits[1]);
  ::close(exits[1]);
  if (!started) return kExitFailed;
  if (!WIFEXITED(status) && family.interrupted()) {
    // So early that the coordinator could not yet hear it, or so often that nobody was asked any more.
    spdlog::error("interrupted");
    return kExitInterrupted;
  }
  if (!WIFEXITED(status)) {
    spdlog::error("lost the coordinator: {}; {} keeps what was recorded until then", describe_exit(status), job.run_file);
    return kExitFailed;
  }
  return WEXITSTATUS(status);
}

}  // namespace drover
