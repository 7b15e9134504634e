// Draws the faults of workers and servers of a hunt case, and whether the run recovers.
#pragma once

#include "sim/hunt_draft.h"

namespace drover {

// REQUIRES (here and below): the job is drawn.
void draw_worker_faults(HuntDraft& draft);
// Draws checkpoints, standbys, and servers that die. Where the run recovers, every process that
// dies is restarted, including workers. REQUIRES: workers' faults and scripts are drawn.
void draw_recovery(HuntDraft& draft);
// Where there are standbys: draws one that is lost permanently, or whose shard is lost soon after
// the standby is restarted. REQUIRES: the recovery is drawn.
void draw_standby_faults(HuntDraft& draft);
// Draws shards that break the protocol.
void draw_repeated_closings(HuntDraft& draft);

}  // namespace drover
