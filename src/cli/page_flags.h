// --dashboard and --metrics: the flags of commands whose run is shown while it goes.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

namespace drover {

// --dashboard [PORT], --metrics [PORT]. `port` must outlive the parsing of `app`, and stays empty
// without the flag.
void add_dashboard_flag(CLI::App& app, std::optional<uint16_t>& port);
void add_metrics_flag(CLI::App& app, std::optional<uint16_t>& port);

}  // namespace drover
