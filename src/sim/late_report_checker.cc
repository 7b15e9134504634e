#include "sim/late_report_checker.h"

#include <fmt/format.h>

#include <algorithm>

namespace drover {
namespace {

// After this many steps a shard need no longer report how late a worker was.
constexpr Step kStepsRemembered = 50;
// A gradient that is complete when its step closes is reported then, and with the next step.
constexpr uint32_t kReportsMost = 2;

}  // namespace

void LateReportChecker::on_lost(ShardId shard, WorkerId worker) {
  const auto is_theirs = [&](const Key& key) {
    return std::get<0>(key) == shard && std::get<2>(key) == worker;
  };
  std::erase_if(answered_, [&](const auto& entry) { return is_theirs(entry.first); });
  std::erase_if(straggling_, is_theirs);
}

void LateReportChecker::restart() {
  answered_.clear();
  straggling_.clear();
  reports_.clear();
}

std::string LateReportChecker::on_closed(ShardId shard, const StepClosed& closed, size_t blocks,
                                         const ExpectedMembers::AtShard& there) {
  std::string wrong;
  for (const StepClosed::Arrival& report : closed.late) {
    if (++reports_[{shard, report.step, report.worker}] > kReportsMost && wrong.empty())
      wrong = fmt::format("shard {} reports repeatedly how long worker {} took in step {}", shard,
                          report.worker, report.step);
  }
  for (auto each = straggling_.begin(); each != straggling_.end();) {
    const auto [where, step, worker] = *each;
    const auto answered = answered_.find(*each);
    const bool whole = answered != answered_.end() && answered->second >= blocks;
    if (where != shard || (!whole && step + kStepsRemembered > closed.step)) {
      ++each;
      continue;
    }
    const bool reported =
        std::any_of(closed.late.begin(), closed.late.end(),
                    [&](const auto& late) { return late.worker == worker && late.step == step; });
    if (whole && !reported && wrong.empty())
      wrong = fmt::format("shard {} does not report how long worker {} took in step {}", shard,
                          worker, step);
    each = straggling_.erase(each);
  }
  for (const auto& [worker, since] : there.members) {
    if (std::none_of(closed.arrivals.begin(), closed.arrivals.end(),
                     [&, it = worker](const auto& arrival) { return arrival.worker == it; }))
      straggling_.insert({shard, closed.step, worker});
  }
  return wrong;
}

}  // namespace drover
