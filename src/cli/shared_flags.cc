#include "cli/shared_flags.h"

#include <charconv>
#include <string>

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

void add_port_flag(CLI::App& app, const std::string& flag, uint16_t usual, const std::string& help,
                   std::optional<uint16_t>& port) {
  app.add_option_function<std::string>(
         flag, [&port](const std::string& text) { port = port_in(text); }, help)
      ->expected(0, 1)
      ->default_str(std::to_string(usual))
      ->type_name("[PORT]")
      ->check([flag](const std::string& text) {
        return port_in(text) ? ""
                             : "expected a port from 0 to 65535, not '" + text +
                                   "'; a file goes before " + flag;
      });
}

}  // namespace

void add_token_options(CLI::App& app, ClusterOptions& options) {
  app.add_option("--token-file", options.token_file,
                 "the token by which processes of a run know each other, in a file that only you "
                 "can read; default: DROVER_TOKEN, or a file that rank 0 makes in ~/.cache/drover")
      ->type_name("FILE")
      ->group(kGroup);
  app.add_option("--join-timeout", options.join_timeout,
                 "seconds within which everybody must have come")
      ->check(CLI::Range(0.1, 1e6))
      ->type_name("SECONDS")
      ->capture_default_str()
      ->group(kGroup);
}

void add_cluster_options(CLI::App& app, ClusterOptions& options) {
  app.add_option("--bind", options.listen.bind,
                 "where coordinator and shards listen; default: an address that others can reach")
      ->type_name("ADDRESS")
      ->group(kGroup);
  app.add_option("--interface", options.listen.interface, "the same by the name of an interface")
      ->type_name("NAME")
      ->group(kGroup);
  app.add_option("--port", options.placement.port,
                 "of the coordinator; default: 29600, or from the number of the job")
      ->check(CLI::Range(1, 65535))
      ->type_name("PORT")
      ->group(kGroup);
  add_token_options(app, options);
  app.add_option("--role", options.placement.role,
                 "without a launcher: be only the coordinator, a shard or a worker")
      ->type_name("ROLE")
      ->group(kGroup);
  app.add_option("--rank", options.placement.rank, "with --role: which shard, or which worker")
      ->type_name("COUNT")
      ->group(kGroup);
  app.add_option("--coordinator", options.placement.coordinator, "where the coordinator is")
      ->type_name("HOST:PORT")
      ->group(kGroup);
}

void add_dashboard_flag(CLI::App& app, std::optional<uint16_t>& port) {
  add_port_flag(app, kDashboard, kPagePort,
                "show the run live on a page of this machine, at this port; 0: any that is free",
                port);
}

void add_metrics_flag(CLI::App& app, std::optional<uint16_t>& port) {
  add_port_flag(app, kMetrics, kMetricsPort,
                "serve metrics for Prometheus on this machine, at this port; 0: any that is free",
                port);
}

}  // namespace drover
