// The metrics of a run in the text format that Prometheus reads.
#pragma once

#include <string>

#include "view/recorded_run.h"

namespace drover {

// Base units, totals end in _total, every family has HELP and TYPE; docs/monitoring.md lists them.
// Unknown values are left out.
std::string metrics_text(const RecordedRun& run);

}  // namespace drover
