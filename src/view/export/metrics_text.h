// RunMetrics in the text format that Prometheus reads.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/result.h"
#include "store/run_reader.h"
#include "view/export/run_metrics.h"

namespace drover {

// Base units, totals end in _total, every family has HELP and TYPE; docs/monitoring.md lists them.
// What is not known is left out.
std::string metrics_text(const RunMetrics& metrics);

// What a server answers to GET /metrics, of a run file that need not be there yet. One thread at a
// time.
class MetricsPage {
 public:
  explicit MetricsPage(std::string run_file) : run_file_(std::move(run_file)) {}

  // An error says why there is nothing to tell, until there is.
  Result<std::string> text();

 private:
  const std::string run_file_;
  std::unique_ptr<RunReader> reader_;  // before what reads through it
  std::unique_ptr<MetricsReader> metrics_;
};

}  // namespace drover
