#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/run_report.h"
#include "cli/summary.h"
#include "fit/fit_module.h"
#include "store/run_reader.h"
#include "tasks/blas_check.h"
#include "tasks/data/fetch.h"
#include "tasks/data/load_dataset.h"
#include "tasks/torch_module.h"

namespace drover {
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

}  // namespace drover
