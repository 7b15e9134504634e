#include <fmt/core.h>

#include <charconv>
#include <ctime>
#include <filesystem>

#include "cli/commands.h"
#include "cli/page_flags.h"
#include "cli/progress.h"
#include "cli/run_report.h"
#include "cli/train_options.h"
#include "core/chance.h"
#include "core/numbers.h"
#include "launch/job_machines.h"
#include "launch/launcher.h"
#include "launch/model_fitting.h"
#include "launch/page_process.h"
#include "launch/run_setup.h"
#include "node/clock.h"
#include "node/interrupts.h"
#include "sim/hunt.h"
#include "sim/scenario_file.h"
#include "sim/scenario_flags.h"
#include "sim/simulation.h"
#include "store/run_writer.h"
#include "tasks/load_task.h"

namespace drover {
namespace {

struct SimulateOptions {
  std::string scenario;
  GivenFlags flags;                   // of the job: they win over the scenario
  uint64_t hunt = 0;                  // so many random fault schedules instead of a scenario
  std::optional<uint16_t> dashboard;  // the port of its page; absent: none
  bool json = false;
  bool quiet = false;
};

constexpr Duration kPulse = std::chrono::milliseconds(200);

// --- one scenario

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

int simulate_scenario(const SimulateOptions& options, const std::string& command_line) {
  auto read = scenario_of(options.scenario, options.flags);
  if (!read) {
    fmt::print(stderr, "drover: {}\n", read.error().message);
    return kExitUsage;
  }
  ScenarioFile& file = read.value();
  Job& job = file.job;
  const std::time_t now = std::time(nullptr);
  if (job.record.run_file.empty()) {
    job.record.run_file =
        default_run_file(std::filesystem::path(options.scenario).stem().string(), now);
  }
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
  // One for each incarnation of the coordinator; what can be wrong is said before anything starts.
  const auto make_policy = [&] { return policy_of(job, foresight, stepped_fitters()); };
  if (const auto policy = make_policy(); !policy) return fail(policy.error());
  for (const RunTimeRule& rule : file.scenario.run_times) {
    if (!rule.law.trace) continue;
    for (const std::string& warning : rule.law.trace->warnings)
      fmt::print(stderr, "drover: warning: {}\n", warning);
  }
  const auto task = load_task(job.task);
  if (!task) return fail(task.error());

  RunHeader header = make_run_header(job, task.value()->describe(), command_line, now);
  header.run_id = draw({static_cast<uint64_t>(Purpose::kRunId), job.task.seed});
  // What the job alone does not say: without it nobody could tell that the times are virtual.
  header.settings.emplace_back("scenario", options.scenario);
  header.environment.emplace_back("scenario", file.text);
  if (const Status started = page.value().start(job.record.run_file); !started)
    return fail(started.error());
  auto writer = RunWriter::create(job.record.run_file, header);
  if (!writer) return fail(writer.error());
  const ProgressStyle style = choose_progress_style(options.quiet);
  const auto view = make_progress_view(job.steps, style, Pace::kClock);
  if (style != ProgressStyle::kNone) {
    fmt::print(stderr, "scenario  {}\n", file.about.empty() ? options.scenario : file.about);
    for (const auto& [key, value] : task.value()->describe())
      fmt::print(stderr, "{:<9} {}\n", key, value);
    fmt::print(stderr, "{:<9} {} workers x {} samples, {} shards, {} steps, policy {}\n{:<9} {}\n",
               "run", job.cluster.workers, job.batch, job.cluster.shards, job.steps,
               job.waiting.policy, "run file", job.record.run_file);
  }

  listen_for_interrupts();
  const TimePoint began = clock_now();
  TimePoint last = began;
  Simulation simulation(
      settings.value(), [&] { return make_policy().value(); }, *task.value(),
      {writer.value().get(), view.get()}, nullptr);
  simulation.on_restart([&](Version version) { return writer.value()->start_over(version); });
  const auto end = simulation.run([&] {
    if (clock_now() - last < kPulse) return !interrupted();
    last = clock_now();
    view->tick();
    // What cannot be written is told again with the next row, and ends the run there.
    [[maybe_unused]] const Status flushed = writer.value()->flush();
    return !interrupted();
  });
  page.value().finish();
  if (!end) {
    return fail(system_error("the simulation failed: " + end.error().message +
                             ". This is a bug in drover; the scenario and the seed repeat it"));
  }
  if (style != ProgressStyle::kNone) {
    fmt::print(stderr, "simulated {:.1f} s in {:.1f} s\n", seconds(simulation.now()),
               seconds(clock_now() - began));
  }
  const int reported = report_run(job.record.run_file, options.json);
  if (end.value().outcome == RunOutcome::kInterrupted) return kExitInterrupted;
  return end.value().outcome == RunOutcome::kCompleted ? reported : kExitFailed;
}

// --- the hunt

// The first seed. Whatever else was given would be ignored, and is therefore refused.
Result<uint64_t> seed_of(const SimulateOptions& options) {
  if (options.dashboard)
    return invalid_input("--hunt records no run that a page could show; leave out --dashboard");
  if (!options.scenario.empty()) {
    return invalid_input(
        "--hunt makes up its own clusters and takes no scenario; leave out one of the two");
  }
  for (const auto& [flag, texts] : options.flags) {
    if (flag == "--seed") continue;
    return invalid_input(
        fmt::format("--hunt makes up its own jobs and takes only --seed beside it, not {}", flag));
  }
  const auto given = options.flags.find("--seed");
  if (given == options.flags.end()) return uint64_t{1};
  const std::string& text = given->second.front();
  uint64_t seed = 0;
  const auto [stop, trouble] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (trouble != std::errc{} || stop != text.data() + text.size())
    return invalid_input("--seed: expected a whole number, not '" + text + "'");
  return seed;
}

void tell_finding(uint64_t seed, const HuntCase& hunt, const HuntResult& found) {
  fmt::print("FOUND: {}\n", found.verdict);
  for (const std::string& line : hunt.story) fmt::print("  {}\n", line);
  fmt::print("Repeat it with:   drover simulate --hunt 1 --seed {}\n", seed);
}

int hunt_for_bugs(const SimulateOptions& options) {
  const auto first = seed_of(options);
  if (!first) {
    fmt::print(stderr, "drover: {}\n", first.error().message);
    return kExitUsage;
  }
  listen_for_interrupts();
  StatusLine progress(choose_progress_style(options.quiet));
  uint64_t completed = 0;
  uint64_t tried = 0;
  for (; tried < options.hunt && !interrupted(); ++tried) {
    const uint64_t seed = first.value() + tried;
    const HuntCase hunt = make_hunt_case(seed);
    const HuntResult found = run_hunt_case(hunt);
    if (!found.verdict.empty()) {
      progress.clear();
      tell_finding(seed, hunt, found);
      return kExitFailed;
    }
    completed += found.end.outcome == RunOutcome::kCompleted ? 1 : 0;
    if (options.hunt == 1) {
      for (const std::string& line : hunt.story) fmt::print("  {}\n", line);
    }
    if (progress.style() == ProgressStyle::kTerminal && progress.due()) {
      progress.show([&](size_t width) {
        return join_parts({{progress_bar(tried + 1, options.hunt), 1},
                           {fmt::format("{}/{} schedules", tried + 1, options.hunt), 3},
                           {"nothing found", 2}},
                          width);
      });
    }
  }
  progress.clear();
  const std::string ended =
      completed == tried ? std::string("all runs completed")
                         : fmt::format("{} runs completed, {} failed because of their faults",
                                       with_commas(completed), with_commas(tried - completed));
  if (options.json) {
    fmt::print("{{\"schedules\":{},\"completed\":{},\"found\":0,\"seed\":{}}}\n", tried, completed,
               first.value());
  } else {
    fmt::print("{} random schedules of faults from seed {}: nothing wrong found; {}.\n",
               with_commas(tried), first.value(), ended);
  }
  return interrupted() ? kExitInterrupted : 0;
}

int simulate_command(const SimulateOptions& options, const std::string& command_line) {
  if (options.hunt > 0) return hunt_for_bugs(options);
  if (options.scenario.empty()) {
    fmt::print(stderr,
               "drover: simulate needs a scenario, such as examples/scenarios/one-slow-node.toml, "
               "or --hunt N for N random schedules of faults\n");
    return kExitUsage;
  }
  return simulate_scenario(options, command_line);
}

}  // namespace

void add_simulate_command(CommandTable& commands) {
  auto [app, options] = commands.add<SimulateOptions>(
      "simulate", "Train on a cluster that is only described: virtual time, real gradients",
      simulate_command);
  app.add_option("scenario", options.scenario, "what the cluster is like")
      ->type_name("SCENARIO.toml");
  app.add_option("--hunt", options.hunt,
                 "run so many short random fault schedules and check what must hold")
      ->check(check_whole_number)
      ->type_name("COUNT");
  app.add_flag("--json", options.json, "print the result as one line of JSON");
  app.add_flag("--quiet", options.quiet, "report only trouble and the result");
  add_job_flags(app, options.flags);
  add_dashboard_flag(app, options.dashboard);
}

}  // namespace drover
