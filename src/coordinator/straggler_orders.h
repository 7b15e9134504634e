// StragglerOrders: who of those that a step did not wait for is told to stop, who is let finish,
// and what stopping cost.
//
// Who finishes does so on our behalf, to show how long it really takes: it is busy until its late
// gradient has come, it is seen in a later step, or it is lost.
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
  // `probe`: the share of stragglers that is let finish all the same, drawn from seed, step and
  // worker, never from run-times. REQUIRES: 0 <= probe <= 1.
  StragglerOrders(StragglerRule rule, double probe, uint64_t seed);

  // A step has closed without these (ascending): whoever was busy and is not among them has come.
  void on_closed(Step step, std::span<const WorkerId> stragglers);
  // Whether to tell a straggler of that step to stop, now. If not, it is busy.
  bool stop(Step step, WorkerId worker, TimePoint now);

  // A gradient for `step` has come late.
  void on_late(Step step, WorkerId worker);
  void on_lost(WorkerId worker);
  // Nothing if it makes no sense: it was not told to stop, or has told us already.
  std::optional<AbandonRecord> on_abandoned(WorkerId worker, const Abandoned& abandoned,
                                            TimePoint now);

  bool is_busy(WorkerId worker) const { return busy_.contains(worker); }
  // How much is kept here, in entries.
  size_t pending() const { return busy_.size() + told_.size(); }

 private:
  const StragglerRule rule_;
  const double probe_;
  const uint64_t seed_;
  std::map<WorkerId, Step> busy_;                        // with its gradient for that step
  std::map<std::pair<Step, WorkerId>, TimePoint> told_;  // to stop, and not heard of since
};

}  // namespace drover
