#include "sim/late_book.h"

#include <fmt/format.h>

#include <algorithm>

namespace drover {
namespace {

// So many steps later a shard need not tell any more how late a worker was.
constexpr Step kStepsRemembered = 50;
// Of a gradient that is whole when its step closes it tells then, and with the next step.
constexpr uint32_t kTimesToldMost = 2;

}  // namespace

void LateBook::on_lost(ShardId shard, WorkerId worker) {
  const auto is_theirs = [&](const Key& key) {
    return std::get<0>(key) == shard && std::get<2>(key) == worker;
  };
  std::erase_if(answered_, [&](const auto& entry) { return is_theirs(entry.first); });
  std::erase_if(straggling_, is_theirs);
}

void LateBook::restart() {
  answered_.clear();
  straggling_.clear();
  told_.clear();
}

std::string LateBook::on_closed(ShardId shard, const StepClosed& closed, size_t blocks,
                                const Attendance::AtShard& there) {
  std::string wrong;
  for (const StepClosed::Arrival& told : closed.late) {
    if (++told_[{shard, told.step, told.worker}] > kTimesToldMost && wrong.empty())
      wrong = fmt::format("shard {} tells again and again how long worker {} took in step {}",
                          shard, told.worker, told.step);
  }
  for (auto each = straggling_.begin(); each != straggling_.end();) {
    const auto [where, step, worker] = *each;
    const auto answered = answered_.find(*each);
    const bool whole = answered != answered_.end() && answered->second >= blocks;
    if (where != shard || (!whole && step + kStepsRemembered > closed.step)) {
      ++each;
      continue;
    }
    const bool told = std::any_of(closed.late.begin(), closed.late.end(), [&](const auto& late) {
      return late.worker == worker && late.step == step;
    });
    if (whole && !told && wrong.empty())
      wrong = fmt::format("shard {} does not tell how long worker {} took in step {}", shard,
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
