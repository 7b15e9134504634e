// Draws for a hunt case: what goes wrong with workers and servers, and whether the run recovers.
#pragma once

#include "sim/hunt_draft.h"

namespace drover {

// REQUIRES (here and below): the job is drawn.
void draw_worker_faults(HuntDraft& draft);
// Checkpoints, standbys, and servers that die. Where the run recovers all that is lost comes back,
// workers too. REQUIRES: workers' faults and scripts are drawn.
void draw_recovery(HuntDraft& draft);
// Where there are standbys: one that is lost for good, or whose shard is lost as soon as it is
// back. REQUIRES: the recovery is drawn.
void draw_standby_faults(HuntDraft& draft);
// A shard breaks the protocol.
void draw_repeated_closings(HuntDraft& draft);

}  // namespace drover
