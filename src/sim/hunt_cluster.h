// Draws the job, the speeds of the workers and the network of a hunt case.
#pragma once

#include "sim/hunt_draft.h"

namespace drover {

void draw_job(HuntDraft& draft);
void draw_run_times(HuntDraft& draft);
void draw_network(HuntDraft& draft);
// Where batches are balanced by speed: replaces some clusters by one in which the order of worker
// speeds is certain. REQUIRES: all other parts are drawn.
void draw_steady_speeds(HuntDraft& draft);

}  // namespace drover
