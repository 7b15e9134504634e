#include "system/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "core/nearest.h"
#include "launch/process_group.h"
#include "node/clock.h"
#include "node/log.h"

namespace drover {
namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds(200);

// Watches the processes while a loop runs. Owned by a shared pointer: a timer that has just expired
// cannot be cancelled, and must not access a deleted object.
class Watch : public std::enable_shared_from_this<Watch> {
 public:
  Watch(boost::asio::io_context& loop, BenchProcesses& processes, TimePoint deadline)
      : loop_(loop), processes_(processes), timer_(loop), deadline_(deadline) {}

  const Status& status() const { return status_; }
  bool late() const { return late_; }

  void wait() {
    timer_.expires_after(kLookEvery);
    timer_.async_wait([watch = weak_from_this()](const boost::system::error_code&) {
      if (const auto self = watch.lock()) self->look();
    });
  }

 private:
  void look() {
    status_ = processes_.all_alive();
    late_ = clock_now() > deadline_;
    if (!status_ || late_) return loop_.stop();
    wait();
  }

  boost::asio::io_context& loop_;
  BenchProcesses& processes_;
  boost::asio::steady_timer timer_;
  const TimePoint deadline_;
  Status status_ = done();
  bool late_ = false;
};

}  // namespace

BenchProcesses::~BenchProcesses() {
  for (const auto& [pid, name] : children_) ::kill(pid, SIGKILL);
  for (const auto& [pid, name] : children_) ::waitpid(pid, nullptr, 0);
}

Status BenchProcesses::add(const std::string& name, const std::function<int()>& body) {
  const pid_t parent = ::getpid();
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) {
    return system_error("cannot start " + name + ": " + std::strerror(errno) +
                        ". Try fewer workers, or raise the limit on processes (ulimit -u).");
  }
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::prctl(PR_SET_NAME, ("drover " + name).c_str());
    set_log_name(name);
    const int status = body();
    std::fflush(nullptr);
    ::_exit(status);
  }
  children_[pid] = name;
  return done();
}

Status BenchProcesses::all_alive() {
  int status = 0;
  const pid_t pid = ::waitpid(-1, &status, WNOHANG);
  if (pid <= 0) return done();
  const std::string name = children_[pid];
  children_.erase(pid);
  return system_error(
      fmt::format("{} of the benchmark is gone before its end: {}", name, describe_exit(status)));
}

Result<CommonMemory> CommonMemory::make(size_t bytes) {
  void* const data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return system_error(
        fmt::format("cannot share {} bytes of memory: {}", bytes, std::strerror(errno)));
  }
  return CommonMemory(static_cast<std::byte*>(data), bytes);
}

CommonMemory::CommonMemory(CommonMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

CommonMemory::~CommonMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Status run_until_stopped(boost::asio::io_context& loop, BenchProcesses& processes,
                         const std::string& what, Duration patience) {
  const auto watch = std::make_shared<Watch>(loop, processes, clock_now() + patience);
  watch->wait();
  loop.restart();
  loop.run();
  if (!watch->status()) return watch->status();
  if (!watch->late()) return done();
  return Error{ErrorKind::kTimedOut,
               fmt::format("{} took longer than {:.0f} seconds; is the machine busy, or the "
                           "network very slow?",
                           what, seconds(patience))};
}

Status enter_network_namespace(const std::string& name) {
  if (name.empty()) return done();
  const std::string path = "/run/netns/" + name;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return system_error(
        fmt::format("cannot open the network namespace {}: {}; 'ip netns add {}' makes one", path,
                    std::strerror(errno), name));
  }
  const int entered = ::setns(fd, CLONE_NEWNET);
  const int trouble = errno;
  ::close(fd);
  if (entered == 0) return done();
  return system_error(fmt::format("cannot enter the network namespace {}: {}; that takes root",
                                  path, std::strerror(trouble)));
}

uint64_t tcp_retransmits() {
  // Two lines for each protocol: names, then values.
  std::ifstream file("/proc/self/net/snmp");
  std::string names;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("Tcp:")) continue;
    if (names.empty()) {
      names = line;
      continue;
    }
    std::istringstream keys(names);
    std::istringstream values(line);
    for (std::string key, value; keys >> key && values >> value;) {
      if (key == "RetransSegs") return std::stoull(value);
    }
  }
  return 0;
}

Result<SocketKind> parse_socket_kind(const std::string& name) {
  static constexpr std::array<std::string_view, 3> kKinds = {"uds", "tcp", "shm"};
  if (name == kKinds[0]) return SocketKind::kUnix;
  if (name == kKinds[1]) return SocketKind::kTcp;
  return invalid_input(fmt::format("--transport: '{}' is not known; there are shm, uds and tcp.{}",
                                   name, did_you_mean(name, kKinds)));
}

std::string listen_address(SocketKind kind, const std::string& listen, const std::string& name) {
  return kind == SocketKind::kTcp ? "tcp:" + listen : "unix:" + name;
}

std::vector<std::string> split_names(const std::string& names) {
  std::vector<std::string> all;
  std::istringstream stream(names);
  for (std::string name; std::getline(stream, name, ',');) {
    if (!name.empty()) all.push_back(name);
  }
  return all;
}

}  // namespace drover
