// Draws for a hunt case: the job, how fast workers are, and the network between all processes.
#pragma once

#include "sim/hunt_draft.h"

namespace drover {

void draw_job(HuntDraft& draft);
void draw_run_times(HuntDraft& draft);
void draw_network(HuntDraft& draft);
// Where work is dealt by speed: now and then a cluster in which it is certain who is slower.
// REQUIRES: all other parts are drawn.
void draw_steady_speeds(HuntDraft& draft);

}  // namespace drover
