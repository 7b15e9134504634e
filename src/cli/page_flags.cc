#include "cli/page_flags.h"

#include <charconv>
#include <string>

#include "view/page_listener.h"

namespace drover {
namespace {

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
