// StragglerOrders: which stragglers of a step are ordered to stop, which may finish, and what
// stopping cost.
//
// A straggler may finish as a probe, which shows its true run-time. It counts as busy until its
// late gradient arrives, it contributes to a later step, or it is lost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "core/ids.h"
#include "core/run_record.h"
#include "core/straggler_rule.h"
#include "core/time.h"
#include "wire/control.h"

namespace drover {

class StragglerOrders {
 public:
  // `probe`: the share of stragglers that may finish despite the rule. They are drawn by seed, step
  // and worker, independently of run-times. REQUIRES: 0 <= probe <= 1.
  StragglerOrders(StragglerRule rule, double probe, uint64_t seed);

  // A step has closed without these stragglers (ascending). A busy worker that is not among them
  // has arrived, and is not busy any more.
  void on_closed(Step step, std::span<const WorkerId> stragglers);
  // Whether to order a straggler of that step to stop, now. If not, it becomes busy.
  bool stop(Step step, WorkerId worker, TimePoint now);

  // A late gradient for `step` has arrived.
  void on_late(Step step, WorkerId worker);
  void on_lost(WorkerId worker);
  // A worker reports that it has stopped. Returns the record; nothing if the report is invalid (the
  // worker was not ordered to stop, or has reported already).
  std::optional<AbandonRecord> on_abandoned(WorkerId worker, const Abandoned& abandoned,
                                            TimePoint now);

  bool is_busy(WorkerId worker) const { return busy_.contains(worker); }
  // The number of entries kept here.
  size_t pending() const { return busy_.size() + ordered_.size(); }

 private:
  const StragglerRule rule_;
  const double probe_;
  const uint64_t seed_;
  std::map<WorkerId, Step> busy_;  // with the gradient for that step
  // Unanswered orders to stop, and when each was given.
  std::map<std::pair<Step, WorkerId>, TimePoint> ordered_;
};

}  // namespace drover
