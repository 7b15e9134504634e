#include <fmt/format.h>

#include <charconv>
#include <ctime>
#include <filesystem>

#include "cli/commands.h"
#include "cli/hunt_command.h"
#include "cli/progress.h"
#include "cli/run_report.h"
#include "cli/shared_flags.h"
#include "cli/train_options.h"
#include "core/random_draw.h"
#include "launch/job_machines.h"
#include "launch/launcher.h"
#include "launch/model_fitting.h"
#include "launch/page_process.h"
#include "launch/run_setup.h"
#include "node/clock.h"
#include "node/interrupts.h"
#include "sim/scenario_file.h"
#include "sim/scenario_flags.h"
#include "sim/simulation.h"
#include "store/run_writer.h"
#include "tasks/load_task.h"

namespace drover {
namespace {

struct SimulateOptions {
  std::string scenario;
  GivenFlags flags;                   // of the job; they override the scenario
  uint64_t hunt = 0;                  // number of random fault schedules to run; 0: a scenario
  std::optional<uint16_t> dashboard;  // port of the dashboard; absent: no dashboard
  bool json = false;
  bool quiet = false;
};

constexpr Duration kBeatInterval = std::chrono::milliseconds(200);

Result<SimulationSettings> settings_of(const ScenarioFile& file) {
  auto coordinator = coordinator_settings(file.job);
  if (!coordinator) return coordinator.error();
  uint32_t at_start = 0;
  for (WorkerId worker = 0; worker < file.job.cluster.workers; ++worker)
    at_start += file.scenario.joins_later(worker) ? 0 : 1;
  coordinator.value().workers_at_start = at_start;
  return SimulationSettings{.coordinator = coordinator.value(),
                            .batch = file.job.batch,
                            .own_parts = file.job.task.partition != DataPartition::kNone,
                            .window_bytes = file.job.cluster.window,
                            .seed = file.job.task.seed,
                            .number_type = file.job.cluster.wire_dtype,
                            .scenario = file.scenario};
}

// Reads the scenario, and chooses a run file if it names none.
Result<ScenarioFile> prepare(const SimulateOptions& options, std::time_t now) {
  auto file = scenario_of(options.scenario, options.flags);
  if (!file) return file;
  Job& job = file.value().job;
  if (job.record.run_file.empty()) {
    job.record.run_file =
        default_run_file(std::filesystem::path(options.scenario).stem().string(), now);
  }
  return file;
}

void print_warnings(const Scenario& scenario) {
  for (const RunTimeRule& rule : scenario.run_times) {
    if (!rule.law.trace) continue;
    for (const std::string& warning : rule.law.trace->warnings)
      fmt::print(stderr, "drover: warning: {}\n", warning);
  }
}

void print_start(const SimulateOptions& options, const ScenarioFile& file, const Task& task) {
  fmt::print(stderr, "scenario  {}\n", file.about.empty() ? options.scenario : file.about);
  for (const auto& [key, value] : task.describe()) fmt::print(stderr, "{:<9} {}\n", key, value);
  const Job& job = file.job;
  fmt::print(stderr, "{:<9} {} workers x {} samples, {} shards, {} steps, policy {}\n{:<9} {}\n",
             "run", job.cluster.workers, job.batch, job.cluster.shards, job.steps,
             job.waiting.policy, "run file", job.record.run_file);
}

RunHeader header_of(const SimulateOptions& options, const ScenarioFile& file, const Task& task,
                    const std::string& command_line, std::time_t now) {
  RunHeader header = make_run_header(file.job, task.describe(), command_line, now);
  header.run_id = draw({static_cast<uint64_t>(Purpose::kRunId), file.job.task.seed});
  // Marks the times of the run as virtual.
  header.settings.emplace_back("scenario", options.scenario);
  header.environment.emplace_back("scenario", file.text);
  return header;
}

// Updates the progress line and flushes the run file, a few times a second of real time.
class Heartbeats {
 public:
  Heartbeats(RunView& view, RunWriter& writer) : view_(view), writer_(writer) {}

  // Returns whether to continue; false if the user has interrupted.
  bool beat() {
    if (clock_now() - last_ < kBeatInterval) return !interrupted();
    last_ = clock_now();
    view_.tick();
    // A write error is reported again by the next row, and ends the run there.
    [[maybe_unused]] const Status flushed = writer_.flush();
    return !interrupted();
  }

 private:
  RunView& view_;
  RunWriter& writer_;
  TimePoint last_ = clock_now();
};

int simulate_scenario(const SimulateOptions& options, const std::string& command_line) {
  const std::time_t now = std::time(nullptr);
  const auto prepared = prepare(options, now);
  if (!prepared) return fail(prepared.error(), kExitUsage);
  const ScenarioFile& file = prepared.value();
  const Job& job = file.job;
  if (const Status free = check_run_file(job.record.run_file); !free) return fail(free.error());
  if (const Status there = check_data_dir(job.task); !there) return fail(there.error());
  auto page = PageProcess::prepare(options.dashboard);
  if (!page) return fail(page.error());
  const auto settings = settings_of(file);
  if (!settings) return fail(settings.error());
  RunTimes future(file.scenario, job.cluster.workers, job.task.seed);
  const Foresight foresight = [&](Step step, std::span<const WorkerId> alive) {
    std::vector<double> times;
    for (const WorkerId worker : alive) times.push_back(future.seconds(step, worker));
    return times;
  };
  // Makes a policy for each incarnation of the coordinator. The first call only reports errors,
  // before anything starts.
  const auto make_policy = [&] { return policy_of(job, foresight, stepped_fitters()); };
  if (const auto policy = make_policy(); !policy) return fail(policy.error());
  print_warnings(file.scenario);
  const auto task = load_task(job.task);
  if (!task) return fail(task.error());

  const RunHeader header = header_of(options, file, *task.value(), command_line, now);
  if (const Status started = page.value().start(job.record.run_file); !started)
    return fail(started.error());
  auto writer = RunWriter::create(job.record.run_file, header);
  if (!writer) return fail(writer.error());
  const ProgressStyle style = choose_progress_style(options.quiet);
  const auto view = make_progress_view(job.steps, style, Pace::kClock);
  if (style != ProgressStyle::kNone) print_start(options, file, *task.value());

  listen_for_interrupts();
  const TimePoint began = clock_now();
  Heartbeats heartbeats(*view, *writer.value());
  Simulation simulation(
      settings.value(), [&] { return make_policy().value(); }, *task.value(),
      {writer.value().get(), view.get()}, nullptr);
  simulation.on_restart([&](Version version) { return writer.value()->restart_at(version); });
  const auto end = simulation.run([&] { return heartbeats.beat(); });
  page.value().finish();
  if (!end) {
    return fail(system_error("the simulation failed: " + end.error().message +
                             ". This is a bug in drover; the scenario and the seed reproduce it"));
  }
  if (style != ProgressStyle::kNone) {
    fmt::print(stderr, "simulated {:.1f} s of virtual time in {:.1f} s\n",
               seconds(simulation.now()), seconds(clock_now() - began));
  }
  const int reported = report_run(job.record.run_file, options.json);
  if (end.value().outcome == RunOutcome::kInterrupted) return kExitInterrupted;
  return end.value().outcome == RunOutcome::kCompleted ? reported : kExitFailed;
}

// The first seed of a hunt. Other flags, which would be ignored, are refused.
Result<uint64_t> seed_of(const SimulateOptions& options) {
  if (options.dashboard) return invalid_input("--hunt records no run; remove --dashboard");
  if (!options.scenario.empty()) {
    return invalid_input("--hunt generates its own scenarios; remove --hunt or the scenario file");
  }
  for (const auto& [key, texts] : options.flags) {
    if (key == "seed") continue;
    return invalid_input(
        fmt::format("--hunt generates its own jobs and accepts only --seed; remove {}",
                    fmt::join(command_words({{key, texts}}), " ")));
  }
  const auto given = options.flags.find("seed");
  if (given == options.flags.end()) return uint64_t{1};
  const std::string& text = given->second.front();
  uint64_t seed = 0;
  const auto [stop, trouble] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (trouble != std::errc{} || stop != text.data() + text.size())
    return invalid_input("--seed: expected a whole number, not '" + text + "'");
  return seed;
}

int simulate_command(const SimulateOptions& options, const std::string& command_line) {
  if (options.hunt > 0) {
    const auto seed = seed_of(options);
    if (!seed) return fail(seed.error(), kExitUsage);
    return hunt_command({.runs = options.hunt,
                         .first_seed = seed.value(),
                         .json = options.json,
                         .quiet = options.quiet});
  }
  if (options.scenario.empty()) {
    fmt::print(
        stderr,
        "drover: no scenario given. Try drover simulate examples/scenarios/one-slow-node.toml, "
        "or --hunt 1000 for random scenarios\n");
    return kExitUsage;
  }
  return simulate_scenario(options, command_line);
}

}  // namespace

void add_simulate_command(CommandTable& commands) {
  auto [app, options] = commands.add<SimulateOptions>(
      "simulate", "Train on a simulated cluster: virtual time, real gradients", simulate_command);
  app.add_option("scenario", options.scenario, "description of the cluster")
      ->type_name("SCENARIO.toml");
  app.add_option("--hunt", options.hunt, "run N random fault schedules and check the invariants")
      ->check(check_whole_number)
      ->type_name("COUNT");
  app.add_flag("--json", options.json, "print the result as one line of JSON");
  app.add_flag("--quiet", options.quiet, "print only errors and the result");
  add_job_flags(app, options.flags);
  add_set_option(app, options.flags);
  add_dashboard_flag(app, options.dashboard);
  add_help_all(app);
}

}  // namespace drover
