#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/run_report.h"
#include "fit/fit_module.h"
#include "store/run_reader.h"
#include "tasks/blas_check.h"
#include "tasks/data/fetch.h"
#include "tasks/data/load_dataset.h"
#include "tasks/torch_module.h"
#include "view/summary.h"

namespace drover {
namespace {

struct RunsOptions {
  std::string run_file;
  bool json = false;
};

struct DataOptions {
  std::string name;
  std::string data_dir;  // empty: the default place
};

struct DoctorOptions {
  uint32_t workers = 4;
  uint32_t shards = 2;
  std::string data_dir;
  bool json = false;
};

int runs_command(const RunsOptions& options) {
  const auto reader = RunReader::open(options.run_file);
  if (!reader) return fail(reader.error());
  const auto summary = summarize(reader.value());
  if (!summary) return fail(summary.error());
  fmt::print("{}", options.json ? to_json_line(summary.value()) + "\n" : to_text(summary.value()));
  return 0;
}

int data_get_command(const DataOptions& options) {
  const std::string data_dir = options.data_dir.empty() ? default_data_dir() : options.data_dir;
  const Status fetched = fetch_dataset(
      options.name, data_dir, [](std::string_view line) { fmt::print(stderr, "{}\n", line); });
  if (!fetched) return fail(fetched.error());
  const std::string where = options.data_dir.empty() ? "" : " --data-dir " + options.data_dir;
  fmt::print("Train on it with:   drover train --data {}{}\n", options.name, where);
  return 0;
}

int doctor_command(const DoctorOptions& options) {
  DoctorQuestion question;
  question.workers = options.workers;
  question.shards = options.shards;
  question.data_dir = options.data_dir.empty() ? default_data_dir() : options.data_dir;
  question.blas = check_blas();
  question.torch = question.blas->ok() ? done() : Status(question.blas->error());
  // Loaded into the same process as libtorch, as in a run, to detect conflicts between the two.
  const Result<FitFunction> fit = load_fit_function();
  question.fit = fit ? done() : Status(fit.error());
  const std::vector<Check> checks = examine(gather(question));
  fmt::print("{}", options.json ? to_json_line(checks) + "\n" : to_text(checks));
  return exit_status(checks);
}

}  // namespace

void add_runs_command(CommandTable& commands) {
  auto [app, options] =
      commands.add<RunsOptions>("runs", "Summarize a run from its run file", runs_command);
  app.add_option("FILE", options.run_file, "run file")->required();
  app.add_flag("--json", options.json, "print a JSON object instead of text");
}

void add_data_commands(CommandTable& commands) {
  CommandGroup group = commands.add_group("data", "Download data sets");
  auto [app, options] =
      group.add<DataOptions>("get", "Download a data set and verify it", data_get_command);
  app.add_option("NAME", options.name, "mnist or cifar10")->required();
  app.add_option("--data-dir", options.data_dir, "folder of data sets");
}

void add_doctor_command(CommandTable& commands) {
  auto [app, options] = commands.add<DoctorOptions>(
      "doctor", "Check whether this machine has what a run needs", doctor_command);
  app.add_option("--workers", options.workers, "number of workers of the planned run")
      ->check(check_whole_number);
  app.add_option("--shards", options.shards, "number of shards of the planned run")
      ->check(check_whole_number);
  app.add_option("--data-dir", options.data_dir, "folder of data sets");
  app.add_flag("--json", options.json, "print a JSON object instead of text");
}

}  // namespace drover
