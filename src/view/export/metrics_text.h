// The metrics of a run in Prometheus' text format.
#pragma once

#include <string>

#include "view/recorded_run.h"

namespace drover {

// Metrics use base units, names of totals end in _total, and every family has HELP and TYPE.
// docs/monitoring.md lists them. Unknown values are omitted.
std::string metrics_text(const RecordedRun& run);

}  // namespace drover
