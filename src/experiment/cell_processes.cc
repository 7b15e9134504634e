#include "experiment/cell_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include "launch/launcher.h"
#include "launch/process_group.h"
#include "node/clock.h"
#include "store/run_reader.h"

namespace drover {
namespace {

constexpr Duration kMoment = std::chrono::milliseconds(20);
// A run that gets SIGTERM closes its run file before it ends.
constexpr Duration kStopPatience = std::chrono::seconds(10);
constexpr Duration kBesidePatience = std::chrono::seconds(2);

// Runs in the child between fork and exec, so it must not allocate.
[[noreturn]] void exec_program(const std::vector<char*>& words, const char* log, pid_t parent,
                               int trouble_fd) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  // The parent's signal handlers do not apply to the child.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(number, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDWR);
  const int errors = *log != '\0' ? ::open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644) : nothing;
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(errors >= 0 ? errors : nothing, STDERR_FILENO);
  ::execvp(words.front(), words.data());
  const int why = errno;
  [[maybe_unused]] const ssize_t written = ::write(trouble_fd, &why, sizeof why);
  ::_exit(127);
}

// The last line of a file that is not empty, without the prefix "drover: ".
std::string last_message(const std::string& path) {
  std::ifstream stream(path);
  std::string last;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) last = line;
  }
  constexpr std::string_view kName = "drover: ";
  return last.starts_with(kName) ? last.substr(kName.size()) : last;
}

// The recorded end of a run that completed or failed; none if it was killed or interrupted.
std::optional<RunEnd> recorded_end(const std::string& run_file) {
  const auto reader = RunReader::open(run_file);
  if (!reader) return std::nullopt;
  const auto end = reader.value().end();
  if (!end) return std::nullopt;
  const bool ended =
      end.value().outcome == RunOutcome::kCompleted || end.value().outcome == RunOutcome::kFailed;
  return ended ? std::optional(end.value()) : std::nullopt;
}

}  // namespace

Result<std::unique_ptr<GroupedProcess>> GroupedProcess::start(const std::vector<std::string>& words,
                                                              const std::string& log) {
  std::vector<char*> raw;
  for (const std::string& word : words) raw.push_back(const_cast<char*>(word.c_str()));
  raw.push_back(nullptr);
  int trouble[2] = {-1, -1};
  const pid_t parent = ::getpid();
  const pid_t pid = ::pipe2(trouble, O_CLOEXEC) == 0 ? ::fork() : -1;
  if (pid < 0) {
    return system_error(fmt::format("cannot start {}: {}", words.front(), std::strerror(errno)));
  }
  if (pid == 0) exec_program(raw, log.c_str(), parent, trouble[1]);
  ::setpgid(pid, pid);  // the child does the same; whichever is first counts
  ::close(trouble[1]);
  int why = 0;
  // exec closes the pipe; only its failure writes to it.
  const bool failed = ::read(trouble[0], &why, sizeof why) == static_cast<ssize_t>(sizeof why);
  ::close(trouble[0]);
  std::unique_ptr<GroupedProcess> process(new GroupedProcess(pid));
  if (failed)
    return system_error(fmt::format("cannot start {}: {}", words.front(), std::strerror(why)));
  return process;
}

GroupedProcess::~GroupedProcess() {
  if (!running()) return;
  ::kill(-pid_, SIGTERM);
  const TimePoint deadline = clock_now() + kBesidePatience;
  while (running() && clock_now() < deadline) std::this_thread::sleep_for(kMoment);
  if (gone_) return;
  kill_group();
  ::waitpid(pid_, &status_, 0);
}

bool GroupedProcess::running() {
  if (gone_) return false;
  siginfo_t info{};
  // With WNOWAIT the process is not reaped, so that its process id cannot be reused before
  // kill_group().
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == 0)
    return true;
  kill_group();  // children that outlive it
  ::waitpid(pid_, &status_, 0);
  gone_ = true;
  return false;
}

void GroupedProcess::terminate() {
  if (!gone_) ::kill(pid_, SIGTERM);
}

void GroupedProcess::kill_group() {
  if (!gone_) ::kill(-pid_, SIGKILL);
}

CellProcesses::CellProcesses(std::string program, const CellFolder& folder,
                             const std::vector<Cell>& cells, std::function<bool()> interrupted)
    : program_(std::move(program)),
      folder_(folder),
      cells_(cells),
      interrupted_(std::move(interrupted)) {}

Status CellProcesses::start(size_t index) {
  const Cell& cell = cells_[index];
  if (const Status begun = folder_.begin(cell); !begun) return begun;
  Running running;
  if (!cell.beside.empty()) {
    auto beside = GroupedProcess::start(cell.beside, "");
    if (!beside) return beside.error();
    running.beside = std::move(beside).value();
  }
  std::vector<std::string> words = {program_};
  words.insert(words.end(), cell.words.begin(), cell.words.end());
  for (const std::string& word : {std::string("--run-file"), folder_.part(cell),
                                  std::string("--quiet"), std::string("--json")})
    words.push_back(word);
  running.began = clock_now();
  auto process = GroupedProcess::start(words, folder_.log(cell));
  if (!process) return process.error();
  running.process = std::move(process).value();
  running_.emplace(index, std::move(running));
  return done();
}

Result<std::vector<EndedCell>> CellProcesses::wait() {
  std::vector<EndedCell> ended;
  for (auto each = running_.begin(); each != running_.end();) {
    Running& running = each->second;
    if (running.beside && running.beside_ended.empty() && !running.beside->running())
      running.beside_ended = describe_exit(running.beside->status());
    if (running.process->running()) {
      ++each;
      continue;
    }
    auto end = finish(each->first, running);
    if (!end) return end.error();
    ended.push_back(std::move(end).value());
    each = running_.erase(each);
  }
  if (stopping_ && clock_now() > kill_at_) {
    // A later call reports their ends.
    for (auto& [cell, running] : running_) running.process->kill_group();
  }
  if (ended.empty()) std::this_thread::sleep_for(kMoment);
  return ended;
}

Result<EndedCell> CellProcesses::finish(size_t index, Running& running) {
  const Cell& cell = cells_[index];
  EndedCell end{.cell = index, .seconds = seconds(clock_now() - running.began)};
  const int status = running.process->status();
  const bool interrupted = WIFEXITED(status) && WEXITSTATUS(status) == kExitInterrupted;
  if (interrupted || (stopping_ && status != 0)) {
    folder_.drop(cell);
    end.ending = CellEnding::kInterrupted;
    return end;
  }
  if (!running.beside_ended.empty()) {
    end.reason = fmt::format("the 'beside' command ended before the run: '{}' {}",
                             cell.beside.front(), running.beside_ended);
  } else if (const auto recorded = recorded_end(folder_.part(cell))) {
    end.reason = recorded->reason;
    if (const Status kept = folder_.keep(cell); !kept) return kept.error();
    return end;
  } else {
    const std::string message = last_message(folder_.log(cell));
    end.reason = message.empty() ? describe_exit(status) : message;
  }
  end.ending = CellEnding::kFailed;
  if (const Status noted = folder_.fail(cell, end.reason); !noted) return noted.error();
  return end;
}

void CellProcesses::stop_all() {
  stopping_ = true;
  kill_at_ = clock_now() + kStopPatience;
  for (auto& [cell, running] : running_) running.process->terminate();
}

}  // namespace drover
