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
  // In the process that has loaded the other one: they have to get along.
  const Result<FitFunction> fit = load_fit_function();
  question.fit = fit ? done() : Status(fit.error());
  const std::vector<Check> checks = examine(gather(question));
  fmt::print("{}", options.json ? to_json_line(checks) + "\n" : to_text(checks));
  return exit_status(checks);
}

}  // namespace

void add_runs_command(CommandTable& commands) {
  auto [app, options] =
      commands.add<RunsOptions>("runs", "Summarise a run from its file", runs_command);
  app.add_option("FILE", options.run_file, "the run file")->required();
  app.add_flag("--json", options.json, "one JSON object instead of text");
}

void add_data_commands(CommandTable& commands) {
  CommandGroup group = commands.add_group("data", "Data sets");
  auto [app, options] =
      group.add<DataOptions>("get", "Fetch a data set and check it", data_get_command);
  app.add_option("NAME", options.name, "mnist or cifar10")->required();
  app.add_option("--data-dir", options.data_dir, "where data sets are kept");
}

void add_doctor_command(CommandTable& commands) {
  auto [app, options] = commands.add<DoctorOptions>(
      "doctor", "Check what a run needs on this machine", doctor_command);
  app.add_option("--workers", options.workers, "for a run of so many workers")
      ->check(check_whole_number);
  app.add_option("--shards", options.shards, "... and so many shards")->check(check_whole_number);
  app.add_option("--data-dir", options.data_dir, "where data sets are kept");
  app.add_flag("--json", options.json, "one JSON object instead of text");
}

}  // namespace drover
