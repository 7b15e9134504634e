#include "launch/page_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "node/log.h"
#include "store/run_writer.h"
#include "view/page_server.h"

namespace drover {
namespace {

int page_main(PageListener listener, RunChooser choose, const PageServerSettings& settings,
              int stop_fd) {
  // Ctrl-C signals all processes of a terminal at once. The page continues until the run has ended.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  ::prctl(PR_SET_NAME, "drover page");
  set_log_name("page");
  [[maybe_unused]] const int niceness = ::nice(10);
  PageServer server(std::move(listener), std::move(choose), settings);
  server.stop_when_readable(stop_fd);
  server.serve();
  return 0;
}

}  // namespace

Result<PageProcess> PageProcess::prepare(const std::optional<uint16_t>& port, bool metrics) {
  PageProcess page;
  if (!port) return page;
  page.metrics_ = metrics;
  auto listener = PageListener::open({.port = *port}, metrics ? "--metrics" : "--dashboard");
  if (!listener) return listener.error();
  page.listener_ = std::move(listener).value();
  return page;
}

PageProcess::PageProcess(PageProcess&& other) noexcept
    : listener_(std::exchange(other.listener_, std::nullopt)),
      metrics_(other.metrics_),
      run_file_(std::move(other.run_file_)),
      pid_(std::exchange(other.pid_, -1)),
      stop_fd_(std::exchange(other.stop_fd_, -1)) {}

Status PageProcess::start(const std::string& run_file) {
  run_file_ = run_file;
  return start(only_run(run_file), {.metrics = true});
}

Status PageProcess::start(RunChooser choose) { return start(std::move(choose), {}); }

Status PageProcess::start(RunChooser choose, const PageServerSettings& settings) {
  if (!listener_) return done();
  PageListener listener = std::move(*listener_);
  listener_.reset();
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return system_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  // Also with --quiet: with --dashboard 0 the user does not know the port.
  fmt::print(stderr, "{:<9} {}{}\n", metrics_ ? "metrics" : "page", listener.url(),
             metrics_ ? "metrics" : "");
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    ::close(ends[1]);
    ::_exit(page_main(std::move(listener), std::move(choose), settings, ends[0]));
  }
  ::close(ends[0]);
  if (pid < 0) {
    const std::string why = std::strerror(errno);
    ::close(ends[1]);
    return system_error(
        "cannot start the process that serves the page: " + why +
        ". Leave out --dashboard and --metrics, or raise the limit on processes (ulimit -u).");
  }
  pid_ = pid;
  stop_fd_ = ends[1];
  return done();
}

void PageProcess::finish() {
  if (pid_ < 0) return;
  // The child may have ended already.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  [[maybe_unused]] const ssize_t written = ::write(stop_fd_, "e", 1);
  std::signal(SIGPIPE, before);
  ::close(std::exchange(stop_fd_, -1));
  const pid_t pid = std::exchange(pid_, -1);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!run_file_.empty()) fold_log(run_file_);
}

}  // namespace drover
