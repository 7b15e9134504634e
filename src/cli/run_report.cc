#include "cli/run_report.h"

#include <fmt/core.h>

#include <optional>
#include <vector>

#include "core/text.h"
#include "store/checkpoint.h"
#include "store/run_reader.h"
#include "view/summary.h"

namespace drover {
int fail(const Error& error, int status) {
  fmt::print(stderr, "drover: {}\n", error.message);
  return status;
}

std::string resume_hint(const std::string& checkpoints) {
  const auto found = checkpoints.empty() ? Result<std::vector<CheckpointFound>>(invalid_input(""))
                                         : list_checkpoints(checkpoints, false);
  std::optional<Version> newest;
  if (!found) return "";
  for (const CheckpointFound& each : found.value()) {
    if (each.checkpoint) newest = each.step;
  }
  return newest
             ? fmt::format("Resume with:       the same command and --resume {} (from step {})\n",
                           shell_quoted(checkpoints), *newest)
             : "";
}

int report_run(const std::string& run_file, bool json) {
  const auto reader = RunReader::open(run_file);
  if (!reader) return fail(reader.error());
  const auto summary = summarize(reader.value());
  if (!summary) return fail(summary.error());
  if (json) {
    fmt::print("{}\n", to_json_line(summary.value()));
  } else {
    fmt::print(
        "\n{}\nSummary:           drover runs {}\nDashboard:         drover dashboard {}\n"
        "Query:             sqlite3 {} 'select * from steps limit 5'\n",
        to_text(summary.value()), shell_quoted(run_file), shell_quoted(run_file),
        shell_quoted(run_file));
  }
  return 0;
}

}  // namespace drover
