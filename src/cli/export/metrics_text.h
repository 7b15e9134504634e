// RunMetrics in the text format that Prometheus reads.
#pragma once

#include <string>
#include <string_view>

#include "cli/export/run_metrics.h"

namespace drover {

// For the Content-Type of an answer.
inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

// Base units, totals end in _total, every family has HELP and TYPE; docs/monitoring.md lists them.
// What is not known is left out.
std::string metrics_text(const RunMetrics& metrics);

}  // namespace drover
