#include <fmt/chrono.h>
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <ctime>

#include "cli/commands.h"
#include "cli/run_report.h"
#include "store/run_reader.h"
#include "view/page_server.h"
#include "view/report.h"

namespace drover {
namespace {

struct DashboardOptions {
  std::string run_file;
  std::string listen = "127.0.0.1";
  uint16_t port = 8410;  // 0: any free port
  std::string token;     // empty: none; required if other machines can connect
};

struct ReportOptions {
  std::vector<std::string> runs;
  std::string out;              // empty: standard output
  std::string format = "html";  // or md
};

int dashboard_command(const DashboardOptions& options) {
  // Fails for a mistyped name instead of serving an empty page.
  if (const auto reader = RunReader::open(options.run_file); !reader) return fail(reader.error());
  auto listener = PageListener::open(
      {.host = options.listen, .port = options.port, .token = options.token}, "--port");
  if (!listener) return fail(listener.error(), kExitUsage);
  fmt::print("{}\n", listener.value().url());
  fmt::print(stderr, "Press Ctrl-C to stop.\n");
  std::fflush(stdout);
  PageServer server(std::move(listener).value(), options.run_file, {.metrics = true});
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
                 "drover: warning: {} has not ended (it is running or was killed); the report "
                 "covers its first {} steps\n",
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
  fmt::print("report: {}\n", options.out);
  return 0;
}

void add_dashboard_options(CLI::App& app, DashboardOptions& options) {
  app.add_option("FILE", options.run_file, "run file")->required()->type_name("RUN.db");
  app.add_option("--port", options.port, "port to listen on (0: any free port)")
      ->check(check_whole_number)
      ->type_name("PORT")
      ->capture_default_str();
  app.add_option("--listen", options.listen,
                 "address to listen on; one that other machines reach needs --token")
      ->type_name("ADDRESS")
      ->capture_default_str();
  app.add_option("--token", options.token, "token that browsers must present")->type_name("TEXT");
}

void add_report_options(CLI::App& app, ReportOptions& options) {
  app.add_option("RUN", options.runs, "run files; several are compared")
      ->required()
      ->type_name("RUN.db");
  app.add_option("--out", options.out, "file to write (default: standard output)")
      ->type_name("FILE");
  app.add_option("--format", options.format,
                 "html: the full dashboard; md: a short summary in Markdown")
      ->check(CLI::IsMember({"html", "md"}))
      ->type_name("html|md")
      ->capture_default_str();
}

}  // namespace

void add_dashboard_command(CommandTable& commands) {
  auto [app, options] = commands.add<DashboardOptions>(
      "dashboard", "Serve a live dashboard of a running or finished run", dashboard_command);
  add_dashboard_options(app, options);
}

void add_report_command(CommandTable& commands) {
  auto [app, options] = commands.add<ReportOptions>(
      "report", "Write a self-contained report of one or several runs", report_command);
  add_report_options(app, options);
}

}  // namespace drover
