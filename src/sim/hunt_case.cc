#include "sim/hunt_case.h"

#include "sim/hunt_cluster.h"
#include "sim/hunt_faults.h"
#include "sim/hunt_features.h"

namespace drover {

// The order matters: later draws depend on earlier ones. Append new draws at the end, so that the
// meaning of existing seeds does not change.
HuntCase make_hunt_case(uint64_t seed) {
  HuntDraft draft(seed);
  draw_job(draft);
  draw_run_times(draft);
  draw_network(draft);
  draw_worker_faults(draft);
  draw_stragglers(draft);
  draw_live(draft);
  draw_partial_pull(draft);
  draw_balance(draft);
  draw_guard(draft);
  draw_scripts(draft);
  draw_recovery(draft);
  draw_repeated_closings(draft);
  draw_steady_speeds(draft);
  draw_momentum(draft);
  draw_standby_faults(draft);
  uint32_t at_start = 0;
  for (WorkerId worker = 0; worker < draft.job().workers; ++worker)
    at_start += draft.scenario().joins_later(worker) ? 0 : 1;
  draft.job().workers_at_start = at_start;
  return draft.hunt;
}

}  // namespace drover
