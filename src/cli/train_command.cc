#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <ctime>
#include <filesystem>
#include <optional>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/run_report.h"
#include "cli/train_options.h"
#include "job/job_file.h"
#include "launch/cluster_seat.h"
#include "launch/job_machines.h"
#include "launch/launcher.h"
#include "launch/model_fitting.h"
#include "launch/page_process.h"
#include "launch/run_setup.h"
#include "net/mpi_module.h"
#include "tasks/load_task.h"

namespace drover {
namespace {

// When the file was last written; the earliest time if it does not exist.
std::filesystem::file_time_type written_at(const std::string& path) {
  std::error_code missing;
  const auto time = std::filesystem::last_write_time(path, missing);
  return missing ? std::filesystem::file_time_type::min() : time;
}

// Runs the processes of a rank without the coordinator: workers and perhaps shards. Only rank 0
// shows the run.
int train_part(const TrainOptions& options, const Placement& placement, const Job& job) {
  if (const Status there = check_data_dir(job.task); !there) return fail(there.error());
  auto part = ClusterSeat::prepare(placement, options.cluster, job, 0);
  if (!part) return fail(part.error());
  const auto task = load_task(job.task);
  if (!task) return fail(task.error());
  return part.value().run(job, worker_factory_for(*task.value()), {}, {}, false);
}

// With MPI, the number of workers follows from the ranks and the shards.
Result<Job> job_for(const TrainOptions& options, const Placement& placement) {
  auto job = job_of(options, defaults_for(placement));
  if (!job || job.value().cluster.transport != Transport::kMpi || !placement.mpi) return job;
  const auto defaults = defaults_with_mpi(placement, job.value().cluster.shards);
  if (!defaults) return defaults.error();
  job = job_of(options, defaults.value());
  if (job && job.value().cluster.workers != defaults.value().cluster.workers) {
    return invalid_input(fmt::format(
        "--workers: with --transport mpi, {} ranks and {} shard{} make {} workers, not {}. Omit "
        "--workers, or start {} ranks",
        placement.ranks, job.value().cluster.shards, job.value().cluster.shards == 1 ? "" : "s",
        defaults.value().cluster.workers, job.value().cluster.workers,
        job.value().cluster.workers + job.value().cluster.shards));
  }
  return job;
}

// Checks the files that the job names, before anything is started.
Status check_before_start(const Job& job) {
  if (const Status free = check_run_file(job.record.run_file); !free) return free;
  if (!job.record.save_model.empty()) {
    const Status writable = check_model_path("--save-model", job.record.save_model);
    if (!writable) return writable;
  }
  return check_data_dir(job.task);
}

void print_start(const Job& job, const Task& task, const Placement& placement) {
  for (const auto& [key, value] : task.describe()) fmt::print(stderr, "{:<9} {}\n", key, value);
  fmt::print(stderr, "{:<9} {} worker{} x {} samples, {} shard{}, {} steps\n{:<9} {}\n", "run",
             job.cluster.workers, job.cluster.workers == 1 ? "" : "s", job.batch,
             job.cluster.shards, job.cluster.shards == 1 ? "" : "s", job.steps, "run file",
             job.record.run_file);
  if (placement.of_many()) fmt::print(stderr, "{:<9} {}\n", "hosts", describe(placement));
}

// Prints the report after the end of the run. Returns the exit status of the command.
int report_end(const TrainOptions& options, const Job& job, int status, bool model_saved) {
  const int reported = report_run(job.record.run_file, options.json);
  if (!options.json && status != 0) fmt::print("{}", resume_hint(job.record.checkpoint));
  if (!options.json && !job.record.save_model.empty() && model_saved)
    fmt::print("Model:             {}\n", job.record.save_model);
  if (!job.record.save_model.empty() && !model_saved) {
    const int failed = fail(system_error("the model was not saved to " + job.record.save_model +
                                         ": the run ended before the last step was evaluated"));
    return status != 0 ? status : failed;
  }
  return status != 0 ? status : reported;
}

// Runs a job whose coordinator is started by this process, and waits for its end.
int train(const TrainOptions& options, const Placement& placement, Job job,
          const std::string& command_line) {
  const std::time_t now = std::time(nullptr);
  if (job.record.run_file.empty())
    job.record.run_file = default_run_file(
        job.task.model + "-" + std::filesystem::path(job.task.data).filename().string(), now);
  if (const Status may = check_before_start(job); !may) return fail(may.error());
  auto page = PageProcess::prepare(options.dashboard);
  if (!page) return fail(page.error());
  auto metrics = PageProcess::prepare(options.metrics, true);
  if (!metrics) return fail(metrics.error());
  const auto task = load_task(job.task);
  if (!task) return fail(task.error());
  const RunHeader header = make_run_header(job, task.value()->describe(), command_line, now);
  std::optional<ClusterSeat> part;
  if (has_others(placement, job)) {
    auto prepared = ClusterSeat::prepare(placement, options.cluster, job, header.run_id);
    if (!prepared) return fail(prepared.error());
    part.emplace(std::move(prepared).value());
  }
  const ProgressStyle style = choose_progress_style(options.quiet);
  const bool shown = style != ProgressStyle::kNone;
  if (shown) print_start(job, *task.value(), placement);
  for (PageProcess* process : {&page.value(), &metrics.value()}) {
    if (const Status started = process->start(job.record.run_file); !started)
      return fail(started.error());
  }
  std::fflush(nullptr);
  const auto model_before = written_at(job.record.save_model);
  const Company company{.view = [&] { return make_progress_view(job.steps, style); },
                        .fitter = background_fitters()};
  const WorkerFactory factory = worker_factory_for(*task.value());
  const int status = part ? part->run(job, factory, header, company, shown)
                          : launch(job, factory, header, company);
  page.value().finish();
  metrics.value().finish();
  std::error_code ignored;
  if (!std::filesystem::exists(job.record.run_file, ignored)) return status;
  // The evaluator saves the model. It can be lost or fail while the run continues.
  return report_end(options, job, status, written_at(job.record.save_model) != model_before);
}

int train_command(const TrainOptions& options, const std::string& command_line) {
  const auto found = find_placement(process_environment(), options.cluster.placement);
  if (!found) return fail(found.error(), kExitUsage);
  const Placement& placement = found.value();
  auto read = job_for(options, placement);
  if (!read) return fail(read.error(), kExitUsage);
  Job job = std::move(read).value();
  if (const Status fits = fit_to(placement, options.cluster, job); !fits)
    return fail(fits.error(), kExitUsage);
  if (options.print_job) {
    fmt::print("{}", to_toml(job));
    return 0;
  }
  if (const auto policy = policy_of(job, {}, background_fitters()); !policy)
    return fail(invalid_input("--policy: " + policy.error().message), kExitUsage);
  if (job.cluster.transport == Transport::kMpi) {
    if (const Status there = check_mpi_module(); !there) return fail(there.error());
  }
  if (placement.of_many() && !duties_in(placement, job).coordinator)
    return train_part(options, placement, job);
  return train(options, placement, std::move(job), command_line);
}

}  // namespace

void add_train_command(CommandTable& commands) {
  auto [app, options] = commands.add<TrainOptions>(
      "train", "Train a built-in model on this machine or as a part of a cluster", train_command);
  add_train_options(app, options);
}

}  // namespace drover
