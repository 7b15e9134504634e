// drover: distributed training that does not wait for slow machines. Reads the command line and
// hands over.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "cli/commands.h"
#include "cli/launch_options.h"
#include "cli/page_process.h"
#include "cli/train_options.h"
#include "cli/version.h"
#include "node/log.h"

namespace drover {
namespace {

std::string command_line(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) line += (i > 0 ? " " : "") + std::string(argv[i]);
  return line;
}

// CLI11 by itself takes -1 for a very large number.
std::string check_whole(const std::string& text) {
  const bool whole = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return whole ? "" : "expected a whole number, not '" + text + "'";
}

void add_replay_options(CLI::App& app, ReplayOptions& replay) {
  app.add_option("--trace", replay.trace,
                 "recorded run-times: a CSV file (step,w0,w1,...), an NPY file or a run file")
      ->required()
      ->type_name("FILE");
  app.add_option("--policy", replay.policies,
                 "policies, separated by commas, or 'all'; 'drover policies' lists them")
      ->required()
      ->allow_extra_args(false)
      ->type_name("NAME,NAME");
  app.add_option("--steps", replay.steps, "only these rows of the trace, from 0, without the last")
      ->type_name("FROM:TO");
  app.add_option("--overhead", replay.overhead,
                 "what a step costs beyond waiting, in the unit of the trace")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--noise", replay.noise,
                 "noise scale of the gradients, in gradients; for goodput and dbw")
      ->type_name("NUMBER");
  app.add_option("--max-wait", replay.max_wait,
                 "the longest a step waits if those are there, in the unit of the trace")
      ->type_name("TIME");
  add_job_flags(app, replay.flags, is_for_replay, {{"--policy-warmup", "--warmup"}});
  app.add_option("--decisions", replay.decisions, "write every decision to this CSV file")
      ->type_name("OUT.csv");
  app.add_option("--save", replay.save, "record the replay in this run file; one for each policy")
      ->type_name("RUN");
  add_dashboard_flag(app, replay.dashboard);
  app.add_flag("--json", replay.json, "one JSON object for each policy instead of a table");
  app.add_flag("--quiet", replay.quiet, "report only trouble and the result");
}

void add_export_options(CLI::App& app, ExportOptions& options) {
  app.add_option("run", options.run_file, "the run file; the run may still be going")
      ->required()
      ->type_name("RUN");
  app.add_option("--format", options.format,
                 "csv (a folder of tables), npy (run-times, steps by workers), perfetto (for "
                 "ui.perfetto.dev) or trace (for drover replay)")
      ->required()
      ->type_name("NAME");
  app.add_option("--out", options.out, "where to")->required()->type_name("PATH");
  app.add_option("--steps", options.steps, "only these steps, from 0, without the last")
      ->type_name("FROM:TO");
  app.add_flag("--force", options.force, "replace files that are there");
  app.add_flag("--quiet", options.quiet, "report only trouble");
}

void add_dashboard_options(CLI::App& app, DashboardOptions& dashboard) {
  app.add_option("FILE", dashboard.run_file, "the run file")->required()->type_name("RUN.db");
  app.add_option("--port", dashboard.port, "where the page is served; 0: any port that is free")
      ->check(check_whole)
      ->type_name("PORT")
      ->capture_default_str();
  app.add_option("--listen", dashboard.listen,
                 "the address it is served on; others than this machine's own need --token")
      ->type_name("ADDRESS")
      ->capture_default_str();
  app.add_option("--token", dashboard.token, "only who knows it may look")->type_name("TEXT");
}

void add_report_options(CLI::App& app, ReportOptions& report) {
  app.add_option("RUN", report.runs, "run files; several are compared")
      ->required()
      ->type_name("RUN.db");
  app.add_option("--out", report.out, "the file to write; default: standard output")
      ->type_name("FILE");
  app.add_option("--format", report.format, "html: a page with everything; md: short, in Markdown")
      ->check(CLI::IsMember({"html", "md"}))
      ->type_name("html|md")
      ->capture_default_str();
}

void add_fit_options(CLI::App& app, FitOptions& fit) {
  app.add_option(
         "--trace", fit.trace,
         "fit to recorded run-times: a CSV file (step,w0,w1,...), an NPY file or a run file")
      ->type_name("FILE");
  app.add_option("--run", fit.runs, "fit to these run files, one after the other")
      ->type_name("FILE");
  app.add_option("--out", fit.out, "save the model to this file")->type_name("MODEL");
  app.add_option("--emission", fit.emission,
                 "shared, workers or sorted; auto: the better of shared and what suits the number "
                 "of workers")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--steps", fit.steps, "only these steps, from 0, without the last")
      ->type_name("FROM:TO");
  app.add_option("--seed", fit.seed, "equal seeds give equal models")
      ->check(check_whole)
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--iterations", fit.iterations, "stop after so many at the latest")
      ->check(check_whole)
      ->type_name("COUNT");
  app.add_option("--show", fit.show, "tell what is in a model file, and fit nothing")
      ->type_name("MODEL");
  app.add_flag("--progress", fit.progress, "plain lines of progress, also on a terminal");
  app.add_flag("--json", fit.json, "one JSON object instead of text");
  app.add_flag("--quiet", fit.quiet, "report only trouble and the result");
}

void add_experiment_options(CLI::App& app, ExperimentOptions& experiment) {
  app.add_option("file", experiment.file,
                 "variants, places, seeds and a target; docs/experiments.md, examples/experiments")
      ->required()
      ->type_name("EXPERIMENT.toml");
  app.add_flag("--resume", experiment.resume,
               "go on with what is missing; no cell that is there is run again");
  app.add_option("--out", experiment.out,
                 "folder for cells and results; default: experiments/<name of the file>")
      ->type_name("DIR");
  app.add_option("--jobs", experiment.jobs,
                 "simulated cells that run at once; 0: as many as there are cores. Real ones run "
                 "one at a time")
      ->check(check_whole)
      ->type_name("COUNT")
      ->capture_default_str();
  add_dashboard_flag(app, experiment.dashboard);
  app.add_flag("--json", experiment.json, "print the summary as one line of JSON");
  app.add_flag("--quiet", experiment.quiet, "report only trouble and the result");
}

void add_bench_options(CLI::App& app, BenchOptions& bench) {
  app.add_option("--workers", bench.workers, "numbers of workers, separated by commas")
      ->type_name("COUNT,COUNT")
      ->capture_default_str();
  app.add_option("--samples", bench.samples, "samples of a forecast; 0: as many as a run takes")
      ->check(check_whole)
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--repeat", bench.repeat, "decisions that are timed for each number of workers")
      ->check(check_whole)
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--emission", bench.emission, "of the model: shared, workers or sorted")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_flag("--json", bench.json, "one JSON object for each number of workers");
}

void add_rounds(CLI::App& app, uint32_t& rounds, bool& json) {
  app.add_option("--rounds", rounds, "rounds, each measuring everything once")
      ->check(check_whole)
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_flag("--json", json, "one JSON object instead of a table");
}

void add_sockets(CLI::App& app, std::string& transport, std::string& listen, std::string& netns,
                 const char* whose) {
  app.add_option("--transport", transport, "uds, tcp or shm")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--listen", listen, "with tcp: address to listen on; port 0: any free one")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option("--netns", netns, whose)->type_name("NAME");
}

void add_optimizer_bench(CLI::App& app, OptimizerBenchOptions& bench) {
  app.add_option("--kind", bench.kind, "sgd, momentum, nesterov, rmsprop, adam or adamw")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--mb", bench.mb, "megabytes of parameters")
      ->check(check_whole)
      ->type_name("COUNT")
      ->capture_default_str();
  add_rounds(app, bench.rounds, bench.json);
}

void add_transport_bench(CLI::App& app, TransportBenchOptions& bench) {
  add_sockets(app, bench.transport, bench.listen, bench.netns,
              "with tcp: network namespace of the far end");
  app.add_option("--volume-mb", bench.volume_mb, "megabytes moved for each figure in each round")
      ->check(check_whole)
      ->type_name("COUNT")
      ->capture_default_str();
  add_rounds(app, bench.rounds, bench.json);
}

void add_server_bench(CLI::App& app, ServerBenchOptions& bench) {
  add_sockets(app, bench.transport, bench.listen, bench.netns,
              "with tcp: network namespaces of the workers, separated by commas, in turn");
  app.add_option("--workers", bench.workers, "processes that push")
      ->check(check_whole)
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--mb", bench.mb, "megabytes (of 1048576) of gradient each")
      ->check(check_whole)
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--kb", bench.kb, "kilobytes (of 1024) of gradient each, instead of --mb")
      ->check(check_whole)
      ->type_name("COUNT");
  app.add_option("--block-kb", bench.block_kb,
                 "kilobytes of each block of a gradient, at most (as training would cut it)")
      ->check(check_whole)
      ->type_name("COUNT");
  app.add_option("--tls", bench.tls, "with tcp: folder of `drover keys make`, to encrypt it all")
      ->type_name("DIR");
  app.add_flag("--fixed-window", bench.fixed_window, "keep the window even while packets get lost");
  app.add_option("--window", bench.window, "bytes of gradients that may be under way at once")
      ->check(check_whole)
      ->type_name("BYTES")
      ->capture_default_str();
  add_rounds(app, bench.rounds, bench.json);
}

void add_keys_options(CLI::App& make, KeysMakeOptions& made, CLI::App& show,
                      KeysShowOptions& shown) {
  make.add_option("--out", made.out, "the folder for ca.pem, cert.pem and key.pem")
      ->required()
      ->type_name("DIR");
  make.add_option("--host", made.hosts, "names or addresses of machines, for people to read")
      ->type_name("NAME");
  make.add_option("--days", made.days, "until they expire")
      ->check(CLI::Range(1, 3650))
      ->type_name("COUNT")
      ->capture_default_str();
  show.add_option("DIR", shown.folder, "the folder")->required()->type_name("DIR");
  show.add_flag("--json", shown.json, "one JSON object instead of text");
}

int run(int argc, char** argv) {
  set_log_name("");
  CLI::App app("Distributed training that does not wait for slow machines.", "drover");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(kVersion));

  TrainOptions train;
  CLI::App* train_app =
      app.add_subcommand("train", "Train a model, starting all processes on this machine");
  add_train_options(*train_app, train);

  LaunchOptions launched;
  CLI::App* launch_app = app.add_subcommand(
      "launch", "Run a PyTorch script as workers, with everything they need, on this machine");
  add_launch_options(*launch_app, launched);
  LaunchOptions served;
  CLI::App* serve_app = app.add_subcommand(
      "serve", "Start everything but the workers, which torchrun or somebody else starts");
  add_serve_options(*serve_app, served);

  WorkerOptions worker;
  CLI::App* worker_app =
      app.add_subcommand("worker", "Join a run that goes on already, as one more worker");
  worker_app->add_option("--join", worker.join, "where the run is; default: as the token file says")
      ->type_name("HOST:PORT");
  worker_app->add_option("--data-dir", worker.data_dir, "where data sets are kept on this host")
      ->type_name("FOLDER");
  worker_app->add_option("--tls", worker.tls, "folder with the run's keys, if it uses TLS")
      ->type_name("FOLDER")
      ->envname("DROVER_TLS");
  add_token_options(*worker_app, worker.cluster);

  RunsOptions runs;
  CLI::App* runs_app = app.add_subcommand("runs", "Summarise a run from its file");
  runs_app->add_option("FILE", runs.run_file, "the run file")->required();
  runs_app->add_flag("--json", runs.json, "one JSON object instead of text");

  ExportOptions exported;
  CLI::App* export_app =
      app.add_subcommand("export", "Write a run as tables, matrices, a trace or a timeline");
  add_export_options(*export_app, exported);

  DashboardOptions dashboard;
  CLI::App* dashboard_app =
      app.add_subcommand("dashboard", "Show a run on a live page, also while it goes");
  add_dashboard_options(*dashboard_app, dashboard);

  ReportOptions report;
  CLI::App* report_app =
      app.add_subcommand("report", "Make one file of one or several runs, to keep, send or print");
  add_report_options(*report_app, report);

  CLI::App* checkpoint_app =
      app.add_subcommand("checkpoint", "Checkpoints of runs: what there is, and as a model");
  checkpoint_app->require_subcommand(1);
  CheckpointInspectOptions inspected;
  CLI::App* inspect_app =
      checkpoint_app->add_subcommand("inspect", "List checkpoints, and what is wrong with them");
  inspect_app->add_option("DIR", inspected.dir, "a folder of checkpoints, or one of them")
      ->required();
  inspect_app->add_flag("--json", inspected.json, "one JSON array instead of a table");
  CheckpointExportOptions model;
  CLI::App* model_app = checkpoint_app->add_subcommand(
      "export", "Write the model of the newest checkpoint as one safetensors file");
  model_app->add_option("DIR", model.dir, "a folder of checkpoints, or one of them")->required();
  model_app->add_option("--out", model.out, "the file to write")
      ->required()
      ->type_name("MODEL.safetensors");
  model_app->add_flag("--average", model.average, "the averaged parameters of a run with --ema");
  model_app->add_flag("--force", model.force, "replace a file that is there");

  DataOptions data;
  CLI::App* data_app = app.add_subcommand("data", "Data sets");
  data_app->require_subcommand(1);
  CLI::App* get_app = data_app->add_subcommand("get", "Fetch a data set and check it");
  get_app->add_option("NAME", data.name, "mnist or cifar10")->required();
  get_app->add_option("--data-dir", data.data_dir, "where data sets are kept");

  DoctorOptions doctor;
  CLI::App* doctor_app = app.add_subcommand("doctor", "Check what a run needs on this machine");
  doctor_app->add_option("--workers", doctor.workers, "for a run of so many workers")
      ->check(check_whole);
  doctor_app->add_option("--shards", doctor.shards, "... and so many shards")->check(check_whole);
  doctor_app->add_option("--data-dir", doctor.data_dir, "where data sets are kept");
  doctor_app->add_flag("--json", doctor.json, "one JSON object instead of text");

  ReplayOptions replay;
  CLI::App* replay_app =
      app.add_subcommand("replay", "What policies would have done with recorded run-times");
  add_replay_options(*replay_app, replay);

  SimulateOptions simulate;
  CLI::App* simulate_app = app.add_subcommand(
      "simulate", "Train on a cluster that is only described: virtual time, real gradients");
  simulate_app->add_option("scenario", simulate.scenario, "what the cluster is like")
      ->type_name("SCENARIO.toml");
  simulate_app
      ->add_option("--hunt", simulate.hunt,
                   "run so many short random fault schedules and check what must hold")
      ->check(check_whole)
      ->type_name("COUNT");
  simulate_app->add_flag("--json", simulate.json, "print the result as one line of JSON");
  simulate_app->add_flag("--quiet", simulate.quiet, "report only trouble and the result");
  add_job_flags(*simulate_app, simulate.flags);
  add_dashboard_flag(*simulate_app, simulate.dashboard);

  ExperimentOptions experiment;
  CLI::App* experiment_app = app.add_subcommand(
      "experiment", "Compare variants by their time to a target, over places and seeds");
  add_experiment_options(*experiment_app, experiment);

  FitOptions fit;
  CLI::App* fit_app =
      app.add_subcommand("fit", "Fit a learned model to recorded run-times, for --policy bayes");
  add_fit_options(*fit_app, fit);

  BenchOptions bench;
  CLI::App* bench_app = app.add_subcommand("bench", "Measure drover itself on this machine");
  bench_app->require_subcommand(1);
  CLI::App* decide_app = bench_app->add_subcommand(
      "decide", "How long a decision takes with a learned model of random weights, on one core");
  add_bench_options(*decide_app, bench);
  OptimizerBenchOptions optimizer_bench;
  CLI::App* optimizer_app =
      bench_app->add_subcommand("optimizer", "How near to the speed of memory a shard's update is");
  add_optimizer_bench(*optimizer_app, optimizer_bench);
  TransportBenchOptions transport_bench;
  CLI::App* transport_app = bench_app->add_subcommand(
      "transport", "Round trips and bandwidth between two processes, beside plain Asio");
  add_transport_bench(*transport_app, transport_bench);
  ServerBenchOptions server_bench;
  CLI::App* server_app = bench_app->add_subcommand(
      "server", "How fast a shard takes gradients and gives out parameters, beside plain memory");
  add_server_bench(*server_app, server_bench);

  CLI::App* keys_app = app.add_subcommand("keys", "Keys that encrypt a run between machines");
  keys_app->require_subcommand(1);
  CLI::App* keys_make_app = keys_app->add_subcommand("make", "Make keys for the machines of a run");
  CLI::App* keys_show_app = keys_app->add_subcommand("show", "Tell what keys are, and until when");
  KeysMakeOptions keys_make;
  KeysShowOptions keys_show;
  add_keys_options(*keys_make_app, keys_make, *keys_show_app, keys_show);

  PoliciesOptions policies;
  CLI::App* policies_app = app.add_subcommand("policies", "List what --policy takes");
  policies_app->add_flag("--json", policies.json, "one JSON object for each policy");

  if (argc == 1) {
    fmt::print("{}", app.help());
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& trouble) {
    fmt::print(stderr, "drover: {}\n", explain_parse_error(app, trouble));
    return kExitUsage;
  }
  int status = 0;
  if (train_app->parsed()) {
    status = train_command(train, command_line(argc, argv));
  } else if (launch_app->parsed()) {
    launched.script = launch_app->remaining();
    if (!launched.script.empty() && launched.script.front().starts_with("-")) {
      fmt::print(stderr, "drover: {}\n", explain_unknown_option(*launch_app, launched.script));
      return kExitUsage;
    }
    status = launch_command(launched, command_line(argc, argv));
  } else if (serve_app->parsed()) {
    status = serve_command(served, command_line(argc, argv));
  } else if (worker_app->parsed()) {
    status = worker_command(worker);
  } else if (simulate_app->parsed()) {
    status = simulate_command(simulate, command_line(argc, argv));
  } else if (runs_app->parsed()) {
    status = runs_command(runs);
  } else if (export_app->parsed()) {
    status = export_command(exported);
  } else if (dashboard_app->parsed()) {
    status = dashboard_command(dashboard);
  } else if (report_app->parsed()) {
    status = report_command(report, command_line(argc, argv));
  } else if (inspect_app->parsed()) {
    status = checkpoint_inspect_command(inspected);
  } else if (model_app->parsed()) {
    status = checkpoint_export_command(model);
  } else if (get_app->parsed()) {
    status = data_get_command(data);
  } else if (replay_app->parsed()) {
    status = replay_command(replay, command_line(argc, argv));
  } else if (experiment_app->parsed()) {
    status = experiment_command(experiment);
  } else if (fit_app->parsed()) {
    status = fit_command(fit);
  } else if (decide_app->parsed()) {
    status = bench_decide_command(bench);
  } else if (optimizer_app->parsed()) {
    status = bench_optimizer_command(optimizer_bench);
  } else if (transport_app->parsed()) {
    status = bench_transport_command(transport_bench);
  } else if (server_app->parsed()) {
    status = bench_server_command(server_bench);
  } else if (keys_make_app->parsed()) {
    status = keys_make_command(keys_make);
  } else if (keys_show_app->parsed()) {
    status = keys_show_command(keys_show);
  } else if (policies_app->parsed()) {
    status = policies_command(policies);
  } else {
    status = doctor_command(doctor);
  }
  if (std::fflush(stdout) != 0) {
    fmt::print(stderr, "drover: cannot write the result: {}\n", std::strerror(errno));
    return status != 0 ? status : 1;
  }
  return status;
}

}  // namespace
}  // namespace drover

int main(int argc, char** argv) { return drover::run(argc, argv); }
