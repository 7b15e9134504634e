#include "view/export/exports.h"

#include <fmt/format.h>

#include <algorithm>

namespace drover {

Result<WorkerCoverage> worker_coverage(const RunReader& reader, const ExportPlan& plan,
                                       double share) {
  WorkerCoverage coverage;
  const auto all = static_cast<double>(plan.steps.to - plan.steps.from);
  const Status status = walk_steps(reader, plan.steps, plan.workers, [&](const WalkedStep& walked) {
    for (const RecordedArrival& each : walked.arrivals) {
      const WorkerId worker = each.arrival.worker;
      coverage.columns = std::max(coverage.columns, worker + 1);
      coverage.known.resize(coverage.columns);
      ++coverage.arrivals;
      if (each.arrival.censored) {
        ++coverage.censored;
      } else if (each.arrival.run_time > Duration::zero()) {
        coverage.known[worker] = true;
      }
    }
    return plan.on_progress(share * static_cast<double>(walked.step.step - plan.steps.from) / all);
  });
  if (!status) return status.error();
  return coverage;
}

std::string seconds_text(Duration duration) {
  const int64_t count = duration.count();
  const uint64_t size = count < 0 ? -static_cast<uint64_t>(count) : static_cast<uint64_t>(count);
  return fmt::format("{}{}.{:09}", count < 0 ? "-" : "", size / 1'000'000'000,
                     size % 1'000'000'000);
}

}  // namespace drover
