// drover: distributed training that does not wait for slow machines. Reads the command line and
// hands over.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "cli/commands.h"
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

int run(int argc, char** argv) {
  set_log_name("");
  CLI::App app("Distributed training that does not wait for slow machines.", "drover");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(kVersion));

  TrainOptions train;
  CLI::App* train_app =
      app.add_subcommand("train", "Train a model, starting all processes on this machine");
  add_train_options(*train_app, train);

  RunsOptions runs;
  CLI::App* runs_app = app.add_subcommand("runs", "Summarise a run from its file");
  runs_app->add_option("FILE", runs.run_file, "The run file")->required();
  runs_app->add_flag("--json", runs.json, "One JSON object instead of text");

  DataOptions data;
  CLI::App* data_app = app.add_subcommand("data", "Data sets");
  data_app->require_subcommand(1);
  CLI::App* get_app = data_app->add_subcommand("get", "Fetch a data set and check it");
  get_app->add_option("NAME", data.name, "mnist or cifar10")->required();
  get_app->add_option("--data-dir", data.data_dir, "Where data sets are kept");

  DoctorOptions doctor;
  CLI::App* doctor_app = app.add_subcommand("doctor", "Check what a run needs on this machine");
  doctor_app->add_option("--workers", doctor.workers, "For a run of so many workers");
  doctor_app->add_option("--shards", doctor.shards, "... and so many shards");
  doctor_app->add_option("--data-dir", doctor.data_dir, "Where data sets are kept");
  doctor_app->add_flag("--json", doctor.json, "One JSON object instead of text");

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
  } else if (runs_app->parsed()) {
    status = runs_command(runs);
  } else if (get_app->parsed()) {
    status = data_get_command(data);
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
