// Draws for a hunt case: which of the things that a run can do it does. Some exclude each other.
#pragma once

#include "sim/hunt_draft.h"

namespace drover {

// REQUIRES (here and below): the job is drawn, and those above.
void draw_stragglers(HuntDraft& draft);
// Where the policy has a forecast to decide by again inside a step.
void draw_live(HuntDraft& draft);
// Shards that hang, workers that continue without some blocks, and blocks that wait for more.
void draw_weak(HuntDraft& draft);
// Work is dealt by speed.
void draw_balance(HuntDraft& draft);
// Gradients whose norm is too large are refused or clipped; fewer than half of the workers send
// such.
void draw_guard(HuntDraft& draft);
// Workers bring their model, say the learning rate, and leave when they like.
void draw_scripts(HuntDraft& draft);
void draw_momentum(HuntDraft& draft);

}  // namespace drover
