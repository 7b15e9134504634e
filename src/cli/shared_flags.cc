#include "cli/shared_flags.h"

#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "job/settings.h"
#include "view/page_listener.h"

namespace drover {
namespace {

constexpr const char* kGroup = "Several hosts";

constexpr const char* kDashboard = "--dashboard";
constexpr const char* kMetrics = "--metrics";
constexpr uint16_t kMetricsPort = 9410;

std::optional<uint16_t> port_in(const std::string& text) {
  uint16_t port = 0;
  const auto [stop, trouble] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (trouble != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return port;
}

void add_port_flag(CLI::App& app, const std::string& flag, uint16_t fallback,
                   const std::string& help, std::optional<uint16_t>& port) {
  app.add_option_function<std::string>(
         flag, [&port](const std::string& text) { port = port_in(text); }, help)
      ->expected(0, 1)
      ->default_str(std::to_string(fallback))
      ->type_name("[PORT]")
      ->check([flag](const std::string& text) {
        return port_in(text) ? ""
                             : "expected a port from 0 to 65535, not '" + text +
                                   "'; a file goes before " + flag;
      });
}

// Options that --help leaves to --help-all, with the groups in which that lists them.
std::vector<std::pair<CLI::Option*, std::string>> more_options(CLI::App& app) {
  std::vector<std::pair<CLI::Option*, std::string>> more;
  for (const Setting& setting : job_settings()) {
    CLI::Option* const option = app.get_option_no_throw(flag_of(setting));
    if (setting.listing == Listing::kMore && option != nullptr)
      more.emplace_back(option, name_of(setting.group));
  }
  for (CLI::Option* const option : app.get_options()) {
    if (option->get_group() == kGroup) more.emplace_back(option, kGroup);
  }
  return more;
}

}  // namespace

void add_help_all(CLI::App& app) {
  const auto more = more_options(app);
  for (const auto& [option, group] : more) option->group("");  // CLI11 does not list this group
  app.add_flag_callback(
      "--help-all",
      [more] {
        for (const auto& [option, group] : more) option->group(group);
        throw CLI::CallForHelp();
      },
      "list all flags");
}

void add_token_options(CLI::App& app, ClusterOptions& options) {
  app.add_option("--token-file", options.token_file,
                 "file with the token of the run (default: $DROVER_TOKEN, or ~/.cache/drover)")
      ->type_name("FILE")
      ->group(kGroup);
  app.add_option("--join-timeout", options.join_timeout,
                 "seconds within which all processes must have joined")
      ->check(CLI::Range(0.1, 1e6))
      ->type_name("SECONDS")
      ->capture_default_str()
      ->group(kGroup);
}

void add_cluster_options(CLI::App& app, ClusterOptions& options) {
  app.add_option("--bind", options.listen.bind,
                 "address of coordinator and shards (default: one that other hosts reach)")
      ->type_name("ADDRESS")
      ->group(kGroup);
  app.add_option("--interface", options.listen.interface, "network interface instead of --bind")
      ->type_name("NAME")
      ->group(kGroup);
  app.add_option("--port", options.placement.port,
                 "port of the coordinator (default: 29600, or by the number of the job)")
      ->check(CLI::Range(1, 65535))
      ->type_name("PORT")
      ->group(kGroup);
  add_token_options(app, options);
  app.add_option("--role", options.placement.role,
                 "without a launcher: run coordinator, shard or worker only")
      ->type_name("ROLE")
      ->group(kGroup);
  app.add_option("--rank", options.placement.rank, "with --role: index of the shard or worker")
      ->type_name("COUNT")
      ->group(kGroup);
  app.add_option("--coordinator", options.placement.coordinator, "address of the coordinator")
      ->type_name("HOST:PORT")
      ->group(kGroup);
}

void add_dashboard_flag(CLI::App& app, std::optional<uint16_t>& port) {
  add_port_flag(app, kDashboard, kPagePort,
                "serve a live dashboard on this machine (port 0: any free port)", port);
}

void add_metrics_flag(CLI::App& app, std::optional<uint16_t>& port) {
  add_port_flag(app, kMetrics, kMetricsPort,
                "serve Prometheus metrics on this machine (port 0: any free port)", port);
}

}  // namespace drover
