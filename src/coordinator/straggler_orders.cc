#include "coordinator/straggler_orders.h"

#include <algorithm>

#include "coordinator/step_ledger.h"
#include "core/check.h"
#include "core/random_draw.h"

namespace drover {

StragglerOrders::StragglerOrders(StragglerRule rule, double probe, uint64_t seed)
    : rule_(rule), probe_(probe), seed_(seed) {
  DROVER_CHECK(probe >= 0.0 && probe <= 1.0);
}

void StragglerOrders::on_closed(Step step, std::span<const WorkerId> stragglers) {
  std::erase_if(busy_, [&](const auto& each) {
    const auto& [worker, since] = each;
    if (since >= step) return false;
    return since + StepLedger::kStepsRemembered < step ||
           !std::binary_search(stragglers.begin(), stragglers.end(), worker);
  });
  while (!ordered_.empty() && ordered_.begin()->first.first + StepLedger::kStepsRemembered < step)
    ordered_.erase(ordered_.begin());
}

bool StragglerOrders::stop(Step step, WorkerId worker, TimePoint now) {
  // An order is a watermark: it would also stop the earlier gradient.
  if (is_busy(worker)) return false;
  if (rule_ == StragglerRule::kFinish || is_probe(seed_, probe_, step, worker)) {
    busy_[worker] = step;
    return false;
  }
  ordered_[{step, worker}] = now;
  return true;
}

// Workers take steps in order: a worker that pushes for this step has finished all earlier ones.
void StragglerOrders::on_late(Step step, WorkerId worker) {
  const auto found = busy_.find(worker);
  if (found != busy_.end() && found->second <= step) busy_.erase(found);
}

void StragglerOrders::on_lost(WorkerId worker) {
  busy_.erase(worker);
  std::erase_if(ordered_, [&](const auto& each) { return each.first.second == worker; });
}

std::optional<AbandonRecord> StragglerOrders::on_abandoned(WorkerId worker,
                                                           const Abandoned& abandoned,
                                                           TimePoint now) {
  const auto found = ordered_.find({abandoned.step, worker});
  if (found == ordered_.end() || abandoned.resumed <= abandoned.step ||
      abandoned.wasted < Duration::zero())
    return std::nullopt;
  const Duration restart = now - found->second;
  // Later orders, up to the step at which it resumed, interrupted nothing more.
  std::erase_if(ordered_, [&](const auto& each) {
    return each.first.second == worker && each.first.first < abandoned.resumed;
  });
  return AbandonRecord{.step = abandoned.step,
                       .worker = worker,
                       .wasted = abandoned.wasted,
                       .restart = restart,
                       .resumed = abandoned.resumed};
}

}  // namespace drover
