#include <fmt/chrono.h>
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <ctime>

#include "cli/commands.h"
#include "cli/page_process.h"
#include "cli/run_report.h"
#include "store/run_reader.h"
#include "web/page_server.h"
#include "web/report.h"

namespace drover {

int dashboard_command(const DashboardOptions& options) {
  // Before anything is served: a name that was mistyped should not become an empty page.
  if (const auto reader = RunReader::open(options.run_file); !reader) return fail(reader.error());
  auto listener = PageListener::open(
      {.host = options.listen, .port = options.port, .token = options.token}, "--port");
  if (!listener) return fail(listener.error(), kExitUsage);
  fmt::print("{}\n", listener.value().url());
  fmt::print(stderr, "Ctrl-C ends it.\n");
  std::fflush(stdout);
  PageServer server(std::move(listener).value(), options.run_file,
                    {.metrics = metrics_of(options.run_file)});
  server.stop_on_signals();
  server.serve();
  return 0;
}

int report_command(const ReportOptions& options, const std::string& command_line) {
  const auto now = std::chrono::system_clock::now();
  std::vector<ReportedRun> runs;
  for (const std::string& path : options.runs) {
    auto run = read_for_report(path, std::chrono::duration_cast<Duration>(now.time_since_epoch()));
    if (!run) return fail(run.error());
    const RunSnapshot& snapshot = run.value().snapshot;
    if (!snapshot.warning.empty()) fmt::print(stderr, "drover: warning: {}\n", snapshot.warning);
    if (snapshot.end.outcome == RunOutcome::kRunning) {
      fmt::print(stderr,
                 "drover: warning: {} was killed or is still going; the report has it up to now, "
                 "{} steps\n",
                 path, snapshot.progress.step);
    }
    runs.push_back(std::move(run).value());
  }
  const ReportFacts facts{
      .made = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                          fmt::gmtime(std::chrono::system_clock::to_time_t(now))),
      .command = command_line};
  const std::string text =
      options.format == "md" ? report_markdown(runs, facts) : report_html(runs, facts);
  if (options.out.empty()) {
    fmt::print("{}", text);
    return 0;
  }
  if (const Status written = write_report(options.out, text); !written)
    return fail(written.error());
  fmt::print("The report is in {}\n", options.out);
  return 0;
}

}  // namespace drover
