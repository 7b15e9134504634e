// drover launch and drover serve: runs whose workers are the user's own programs.
#include <fcntl.h>
#include <fmt/core.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <thread>

#include "cli/commands.h"
#include "cli/launch_options.h"
#include "cli/progress.h"
#include "cli/run_report.h"
#include "launch/job_machines.h"
#include "launch/launcher.h"
#include "launch/model_fitting.h"
#include "launch/page_process.h"
#include "launch/run_setup.h"
#include "net/descriptor.h"
#include "node/live_session.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

void set_variable(const std::string& name, const std::string& value, bool replace = true) {
  ::setenv(name.c_str(), value.c_str(), replace ? 1 : 0);
}

fs::path program_folder() {
  std::error_code missing;
  const fs::path program = fs::read_symlink("/proc/self/exe", missing);
  return missing ? fs::path() : program.parent_path();
}

std::string python_of(const LaunchOptions& options) {
  if (!options.python.empty()) return options.python;
  const fs::path beside = program_folder() / "python3";
  std::error_code missing;
  return fs::exists(beside, missing) ? beside.string() : "python3";
}

// Appends the Python package that was built with this program to PYTHONPATH, so that scripts find
// it even if it is not installed. What the user has set takes precedence.
void add_package_to_path() {
  std::error_code missing;
  const fs::path package = program_folder() / "python";
  if (!fs::exists(package / "drover", missing)) return;
  const char* const before = std::getenv("PYTHONPATH");
  const bool is_set = before != nullptr && *before != '\0';
  set_variable("PYTHONPATH", is_set ? before + (":" + package.string()) : package.string());
}

// `-m package.module`, as of python3.
bool is_module(const LaunchOptions& options) {
  return options.script.size() >= 2 && options.script.front() == "-m";
}

// The script in a few letters.
std::string name_of_script(const LaunchOptions& options) {
  return is_module(options) ? options.script[1] : fs::path(options.script.front()).stem().string();
}

// Replaces this process by the script. Returns only if that fails.
int exec_script(const LaunchOptions& options, const Job& job, const WorkerSettings& settings) {
  set_variable("DROVER_ADDRESS", settings.identity.coordinator);
  set_variable("DROVER_TOKEN", to_text(settings.identity.key));
  if (!job.cluster.tls.empty()) set_variable("DROVER_TLS", fs::absolute(job.cluster.tls).string());
  set_variable("DROVER_RANK", std::to_string(settings.identity.index));
  set_variable("DROVER_WORKERS", std::to_string(job.cluster.workers));
  // As torchrun has them, for samplers and scripts that read these.
  set_variable("RANK", std::to_string(settings.identity.index));
  set_variable("LOCAL_RANK", std::to_string(settings.identity.index));
  set_variable("WORLD_SIZE", std::to_string(job.cluster.workers));
  if (settings.rejoin_for > Duration::zero())
    set_variable("DROVER_REJOIN_FOR",
                 std::to_string(static_cast<int>(seconds(settings.rejoin_for))));
  // By default every process would start one thread per core.
  const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  set_variable("OMP_NUM_THREADS", std::to_string(std::max(1u, cores / job.cluster.workers)), false);
  add_package_to_path();
  std::vector<std::string> words = options.script;
  if (words.front().ends_with(".py") || is_module(options))
    words.insert(words.begin(), python_of(options));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  spdlog::error("cannot start {}: {}{}", words.front(), std::strerror(errno),
                words.size() > options.script.size() ? "; try --python PROGRAM" : "");
  return 127;
}

Status check_script(const LaunchOptions& options) {
  if (options.script.empty())
    return invalid_input("no script given; example: drover launch --workers 4 script.py");
  const std::string& script = options.script.front();
  std::error_code ignored;
  if (script.ends_with(".py") && !fs::is_regular_file(script, ignored))
    return invalid_input("no such script: " + script);
  return done();
}

// Fills in the names of model and data, which a job without a task does not have.
void name_task(const LaunchOptions& options, Job& job) {
  job.task.model = options.script.empty() ? "the workers' own model"
                   : is_module(options)   ? options.script[1]
                                          : fs::path(options.script.front()).filename().string();
  job.task.data = "its own data";
}

// Runs the job with this factory, shows its progress and reports its result.
int run_job(Job job, const WorkerFactory& factory, const LaunchOptions& options,
            const std::string& command_line,
            const std::function<Status(const Invitation&)>& invite) {
  if (const auto policy = policy_of(job, {}, background_fitters()); !policy) {
    fmt::print(stderr, "drover: --policy: {}\n", policy.error().message);
    return kExitUsage;
  }
  const std::time_t now = std::time(nullptr);
  name_task(options, job);
  RunHeader header = make_run_header(job, {}, command_line, now);
  header.job.clear();  // `drover train` could not repeat it without the workers' programs
  if (job.record.run_file.empty()) {
    job.record.run_file =
        default_run_file(options.script.empty() ? "serve" : name_of_script(options), now);
  }
  if (const Status free = check_run_file(job.record.run_file); !free) return fail(free.error());
  auto page = PageProcess::prepare(options.dashboard);
  if (!page) return fail(page.error());
  auto metrics = PageProcess::prepare(options.metrics, true);
  if (!metrics) return fail(metrics.error());
  ProgressStyle style = choose_progress_style(options.quiet);
  // Scripts write to the same terminal; a line that is rewritten would overwrite their output.
  if (style == ProgressStyle::kTerminal) style = ProgressStyle::kLines;
  if (style != ProgressStyle::kNone)
    fmt::print(stderr, "{:<9} {} workers, {} shards\n{:<9} {}\n", "run", job.cluster.workers,
               job.cluster.shards, "run file", job.record.run_file);
  for (PageProcess* process : {&page.value(), &metrics.value()}) {
    if (const Status started = process->start(job.record.run_file); !started)
      return fail(started.error());
  }
  std::fflush(nullptr);
  const int status = launch(job, factory, header,
                            {.view = [&] { return make_progress_view(job.steps, style); },
                             .fitter = background_fitters()},
                            invite);
  page.value().finish();
  metrics.value().finish();
  std::error_code ignored;
  if (!fs::exists(job.record.run_file, ignored)) return status;
  const int reported = report_run(job.record.run_file, options.json);
  return status != 0 ? status : reported;
}

// The file in which this user's workers on this machine find a run: the token and the address, a
// line each. It stays locked during the run, so that two runs cannot use one port.
class InvitationFile {
 public:
  static Result<InvitationFile> open(uint16_t port) {
    const auto folder = folder_of_tokens();
    if (!folder) return folder.error();
    std::error_code trouble;
    fs::create_directories(folder.value(), trouble);
    InvitationFile file;
    file.path_ = folder.value() / ("token-" + std::to_string(port));
    file.file_ = Descriptor(::open(file.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file.file_.open())
      return system_error("cannot write " + file.path_.string() + ": " + std::strerror(errno));
    if (::flock(file.file_.get(), LOCK_EX | LOCK_NB) != 0) {
      return invalid_input("another drover serve uses port " + std::to_string(port) +
                           "; choose another with --port, and set DROVER_PORT for the workers");
    }
    ::fchmod(file.file_.get(), 0600);
    return file;
  }

  Status write(const Invitation& invitation) const {
    const std::string text = invitation.token + "\n" + invitation.address + "\n";
    const bool written =
        ::ftruncate(file_.get(), 0) == 0 &&
        ::pwrite(file_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
    if (written) return done();
    return system_error("cannot write " + path_.string() + ": " + std::strerror(errno));
  }

  void remove() const {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  static Result<fs::path> folder_of_tokens() {
    const auto named = [](const char* name) {
      const char* const value = std::getenv(name);
      return fs::path(value != nullptr ? value : "");
    };
    if (const fs::path runtime = named("XDG_RUNTIME_DIR"); !runtime.empty())
      return runtime / "drover";
    if (const fs::path home = named("HOME"); !home.empty()) return home / ".cache" / "drover";
    return invalid_input("cannot keep the run's token: neither XDG_RUNTIME_DIR nor HOME is set");
  }

  fs::path path_;
  Descriptor file_;
};

int launch_command(const LaunchOptions& options, const std::string& command_line) {
  const auto job = job_of(options);
  const Status script = check_script(options);
  if (!job || !script) {
    fmt::print(stderr, "drover: {}\n", !job ? job.error().message : script.error().message);
    return kExitUsage;
  }
  const WorkerFactory factory{.worker =
                                  [&](const WorkerSettings& settings) {
                                    return exec_script(options, job.value(), settings);
                                  },
                              .evaluator = nullptr,
                              .brings_model = true,
                              .may_stay = true,
                              .failures_allowed = options.allow_failures};
  return run_job(job.value(), factory, options, command_line, nullptr);
}

int serve_command(const LaunchOptions& options, const std::string& command_line) {
  auto job = job_of(options);
  if (!job) {
    fmt::print(stderr, "drover: {}\n", job.error().message);
    return kExitUsage;
  }
  if (!options.flags.contains("listen"))
    job.value().cluster.listen = "127.0.0.1:" + std::to_string(options.port);
  const auto file = InvitationFile::open(options.port);
  if (!file) return fail(file.error());
  const auto invite = [&](const Invitation& invitation) -> Status {
    if (!options.quiet) {
      fmt::print(stderr,
                 "waiting for {} workers. Start them on this machine with\n"
                 "  torchrun --nproc_per_node {} script.py{}\n"
                 "or on other machines with DROVER_ADDRESS={}{} and the token in\n  {}\n",
                 job.value().cluster.workers, job.value().cluster.workers,
                 options.port == kServePort
                     ? ""
                     : "   (with DROVER_PORT=" + std::to_string(options.port) + ")",
                 invitation.address,
                 job.value().cluster.tls.empty() ? "" : ", DROVER_TLS=DIR with the same keys",
                 file.value().path());
    }
    return file.value().write(invitation);
  };
  const WorkerFactory factory{
      .worker = nullptr, .evaluator = nullptr, .brings_model = true, .may_stay = false};
  const int status = run_job(job.value(), factory, options, command_line, invite);
  file.value().remove();
  return status;
}

}  // namespace

void add_launch_command(CommandTable& commands) {
  const auto added = commands.add<LaunchOptions>(
      "launch", "Run a PyTorch script as the workers of a run on this machine", launch_command);
  add_launch_options(added.app, added.options);
  // The words after the script are the script's arguments.
  added.app.final_callback([added] {
    std::vector<std::string>& script = added.options.script;
    script = added.app.remaining();
    if (!script.empty() && script.front().starts_with("-") && !is_module(added.options))
      throw CLI::ExtrasError(added.app.get_name(), script);
  });
}

void add_serve_command(CommandTable& commands) {
  auto [app, options] = commands.add<LaunchOptions>(
      "serve", "Start a run without workers; torchrun or another launcher starts them",
      serve_command);
  add_serve_options(app, options);
}

}  // namespace drover
