#include "view/export/exports.h"

#include <fmt/format.h>

#include <algorithm>

namespace drover {

Result<Attendees> attendees_of(const RunReader& reader, const ExportPlan& plan, double share) {
  Attendees attendees;
  const auto all = static_cast<double>(plan.steps.to - plan.steps.from);
  const Status status = walk_steps(reader, plan.steps, plan.workers, [&](const WalkedStep& walked) {
    for (const RecordedArrival& each : walked.arrivals) {
      const WorkerId worker = each.arrival.worker;
      attendees.columns = std::max(attendees.columns, worker + 1);
      attendees.known.resize(attendees.columns);
      ++attendees.arrivals;
      if (each.arrival.censored) {
        ++attendees.censored;
      } else if (each.arrival.run_time > Duration::zero()) {
        attendees.known[worker] = true;
      }
    }
    return plan.watch(share * static_cast<double>(walked.step.step - plan.steps.from) / all);
  });
  if (!status) return status.error();
  return attendees;
}

std::string seconds_text(Duration duration) {
  const int64_t count = duration.count();
  const uint64_t size = count < 0 ? -static_cast<uint64_t>(count) : static_cast<uint64_t>(count);
  return fmt::format("{}{}.{:09}", count < 0 ? "-" : "", size / 1'000'000'000,
                     size % 1'000'000'000);
}

}  // namespace drover
