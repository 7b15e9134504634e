#include "cli/launch_options.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/shared_flags.h"
#include "launch/run_setup.h"

namespace drover {
namespace {

// Settings that a script determines itself, or that need a built-in task.
constexpr std::array<std::string_view, 10> kOfTheScript = {
    "model",       "data",       "data_dir", "generated_samples", "micro_batch", "partition",
    "workers_max", "save_model", "pull",     "pull_grace"};
// The settings of optimizer and learning rate that a script cannot determine.
constexpr std::array<std::string_view, 2> kOfTheRun = {"ema", "lr_rule"};

bool is_for_scripts(const Setting& setting) {
  const auto among = [&](const auto& keys) {
    return std::find(keys.begin(), keys.end(), setting.key) != keys.end();
  };
  return setting.group == SettingGroup::kLearning ? among(kOfTheRun) : !among(kOfTheScript);
}

void add_common(CLI::App& app, LaunchOptions& options) {
  add_job_flags(app, options.flags, is_for_scripts);
  add_set_option(app, options.flags, is_for_scripts);
  // The scripts' own number, and not that of a built-in task.
  if (CLI::Option* const steps = app.get_option_no_throw("--steps"))
    steps->default_str("until a script ends");
  app.add_flag("--json", options.json, "print the result as one line of JSON");
  app.add_flag("--quiet", options.quiet, "print only errors and the result");
  add_dashboard_flag(app, options.dashboard);
  add_metrics_flag(app, options.metrics);
}

}  // namespace

void add_launch_options(CLI::App& app, LaunchOptions& options) {
  add_common(app, options);
  app.add_option("--python", options.python,
                 "interpreter of scripts that end in .py (default: python3)")
      ->envname("DROVER_PYTHON")
      ->type_name("PROGRAM");
  app.add_option("--allow-failures", options.allow_failures,
                 "exit with status 0 if at most N scripts fail")
      ->type_name("N")
      ->capture_default_str();
  add_help_all(app);
  app.prefix_command();
  app.footer(
      "The script and its arguments come last: drover launch --workers 4 script.py --epochs 3\n"
      "or, as with python3 -m: drover launch --workers 4 -m package.train --epochs 3");
}

void add_serve_options(CLI::App& app, LaunchOptions& options) {
  add_common(app, options);
  app.add_option("--port", options.port,
                 "port by which workers on this machine find the run ($DROVER_PORT)")
      ->check(CLI::Range(uint16_t{1}, uint16_t{65535}))
      ->type_name("PORT")
      ->capture_default_str();
  add_help_all(app);
}

Result<Job> job_of(const LaunchOptions& options) {
  Job job;
  job.steps = kEndless;
  const Status status = apply_flags(options.flags, job);
  if (!status) return status.error();
  if (const Status may = check_listen(job.cluster); !may) return may.error();
  if (job.cluster.transport == Transport::kMpi) {
    return invalid_input(
        "--transport: mpi needs drover train under mpirun or srun; workers of a script start "
        "without MPI. Use tcp or auto");
  }
  return job;
}

}  // namespace drover
