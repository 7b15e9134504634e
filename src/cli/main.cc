// drover: distributed training that does not wait for slow machines. Parses the command line and
// runs the command that it names.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "cli/commands.h"
#include "cli/run_report.h"
#include "cli/train_options.h"
#include "core/version.h"
#include "node/log.h"

namespace drover {
namespace {

// In the order in which --help lists them.
constexpr std::array kCommands = {
    add_train_command,       add_launch_command,     add_serve_command,     add_worker_command,
    add_runs_command,        add_export_command,     add_dashboard_command, add_report_command,
    add_checkpoint_commands, add_data_commands,      add_doctor_command,    add_replay_command,
    add_simulate_command,    add_experiment_command, add_fit_command,       add_keys_commands,
    add_policies_command};

std::string command_line(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) line += (i > 0 ? " " : "") + std::string(argv[i]);
  return line;
}

int run(int argc, char** argv) {
  set_log_name("");
  CLI::App app("Distributed training that does not wait for slow machines.", "drover");
  app.set_version_flag("--version", std::string(kVersion));
  CommandTable commands(app);
  for (const auto& add : kCommands) add(commands);

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
  const int status = commands.run(command_line(argc, argv));
  if (std::fflush(stdout) != 0) {
    fmt::print(stderr, "drover: cannot write the result: {}\n", std::strerror(errno));
    return status != 0 ? status : 1;
  }
  return status;
}

}  // namespace
}  // namespace drover

int main(int argc, char** argv) { return drover::run(argc, argv); }
