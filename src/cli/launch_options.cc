#include "cli/launch_options.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/shared_flags.h"
#include "launch/run_setup.h"

namespace drover {
namespace {

// Of the settings of a job, those that a script says for itself, or that need a built-in task.
constexpr std::array<std::string_view, 10> kOfTheScript = {
    "model",       "data",       "data_dir", "generated_samples", "micro_batch", "partition",
    "workers_max", "save_model", "pull",     "pull_grace"};
// Of how it learns, what a script has no words for.
constexpr std::array<std::string_view, 2> kOfTheRun = {"optimizer.ema_decay", "schedule.rule"};

bool is_for_scripts(const Setting& setting) {
  const auto among = [&](const auto& keys) {
    return std::find(keys.begin(), keys.end(), setting.key) != keys.end();
  };
  return table_of(setting).empty() ? !among(kOfTheScript) : among(kOfTheRun);
}

void add_common(CLI::App& app, LaunchOptions& options) {
  add_job_flags(app, options.flags, is_for_scripts);
  app.add_flag("--json", options.json, "print the result as one line of JSON");
  app.add_flag("--quiet", options.quiet, "report only trouble and the result");
  add_dashboard_flag(app, options.dashboard);
  add_metrics_flag(app, options.metrics);
}

}  // namespace

void add_launch_options(CLI::App& app, LaunchOptions& options) {
  add_common(app, options);
  app.add_option("--python", options.python,
                 "what runs a script that ends in .py; default: python3")
      ->envname("DROVER_PYTHON")
      ->type_name("PROGRAM");
  app.prefix_command();
  app.footer("Then the script and its arguments: drover launch --workers 4 script.py --epochs 3");
}

void add_serve_options(CLI::App& app, LaunchOptions& options) {
  add_common(app, options);
  app.add_option("--port", options.port,
                 "under which workers on this machine find the run (DROVER_PORT); with "
                 "--transport tcp also where it listens, unless --listen says otherwise")
      ->check(CLI::Range(uint16_t{1}, uint16_t{65535}))
      ->type_name("PORT")
      ->capture_default_str();
}

Result<Job> job_of(const LaunchOptions& options) {
  Job job;
  job.steps = kEndless;
  const Status status = apply_flags(options.flags, job);
  if (!status) return status.error();
  if (const Status may = check_listen(job.cluster); !may) return may.error();
  if (job.cluster.transport == Transport::kMpi) {
    return invalid_input(
        "--transport: mpi is for drover train under mpirun or srun; workers of a script are "
        "started without MPI. Take tcp, or auto");
  }
  return job;
}

}  // namespace drover
