// drover worker: joins a run in progress as an additional worker, and leaves it on Ctrl-C.
#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <csignal>

#include "cli/commands.h"
#include "cli/run_report.h"
#include "cli/shared_flags.h"
#include "job/job_file.h"
#include "launch/cluster_meeting.h"
#include "launch/cluster_options.h"
#include "launch/cluster_part.h"
#include "launch/run_setup.h"
#include "node/interrupts.h"
#include "node/log.h"
#include "node/worker_node.h"
#include "tasks/load_task.h"

namespace drover {
namespace {

struct WorkerOptions {
  std::string join;      // HOST:PORT of the coordinator; empty: the address in the token file
  std::string data_dir;  // empty: the folder that the job names
  std::string tls;       // folder of keys; empty: connections are not encrypted
  ClusterOptions cluster;
};

// The full address: "node1:29600" means "tcp:node1:29600".
std::string address_of(const std::string& join) {
  if (join.empty() || join.starts_with("unix:") || join.starts_with("tcp:")) return join;
  return "tcp:" + join;
}

int worker_command(const WorkerOptions& options) {
  const std::string address = address_of(options.join);
  if (!address.empty() && !address.starts_with("unix:") &&
      address.find(':', sizeof("tcp:") - 1) == std::string::npos) {
    fmt::print(stderr,
               "drover: --join: '{}' has no port; expected HOST:PORT, such as node1:29600\n",
               options.join);
    return kExitUsage;
  }
  const auto place = find_token_place(process_environment(), options.cluster.token_file, "");
  if (!place) return fail(place.error());
  const auto run = find_coordinator(place.value(), {.given = address, .otherwise = {}},
                                    options.cluster.patience());
  if (!run) return fail(run.error());
  RunKey key = run.value().key;
  if (const Status loaded = use_tls(key, options.tls); !loaded) return fail(loaded.error());
  const auto offered = ask_for_place(run.value().address, key, options.cluster.patience());
  if (!offered) return fail(offered.error());
  auto job = parse_job(offered.value().job, "the run's job");
  if (!job) return fail(job.error());
  if (!options.data_dir.empty()) job.value().task.data_dir = options.data_dir;
  if (const Status there = check_data_dir(job.value().task); !there) return fail(there.error());
  const auto task = load_task(job.value().task);
  if (!task) return fail(task.error());
  const std::string name = peer_name(Role::kWorker, offered.value().worker);
  fmt::print(stderr, "joined as {} of the run at {}; press Ctrl-C to leave\n", name,
             run.value().address);
  set_log_name(name);
  std::signal(SIGPIPE, SIG_IGN);
  listen_for_interrupts();
  return run_worker({.identity = {Role::kWorker, offered.value().worker, key, run.value().address},
                     .own_part = job.value().task.partition != DataPartition::kNone,
                     .partial = job.value().waiting.pull != 1.0,
                     .sharing = sharing_of(job.value().cluster.transport),
                     .rejoin_for = worker_rejoins_for(job.value()),
                     .wants_to_leave = interrupted},
                    *task.value());
}

}  // namespace

void add_worker_command(CommandTable& commands) {
  auto [app, options] = commands.add<WorkerOptions>(
      "worker", "Join a run in progress as an additional worker", worker_command);
  app.add_option("--join", options.join, "address of the run (default: as in the token file)")
      ->type_name("HOST:PORT");
  app.add_option("--data-dir", options.data_dir, "folder of data sets on this host")
      ->type_name("FOLDER");
  app.add_option("--tls", options.tls, "folder of the run's keys, if the run uses TLS")
      ->type_name("FOLDER")
      ->envname("DROVER_TLS");
  add_token_options(app, options.cluster);
}

}  // namespace drover
