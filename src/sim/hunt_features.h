// Draws the features that a hunt case uses. Some exclude each other.
#pragma once

#include "sim/hunt_draft.h"

namespace drover {

// REQUIRES (here and below): the job is drawn, and the features above.
void draw_stragglers(HuntDraft& draft);
// Where the policy can revise its decision within a step.
void draw_live(HuntDraft& draft);
// Shards that hang, workers that continue with part of the blocks (partial pull), and blocks that
// wait longer for gradients (push grace).
void draw_partial_pull(HuntDraft& draft);
// Batches are balanced by speed.
void draw_balance(HuntDraft& draft);
// Gradients whose norm is too large are refused or clipped. Fewer than half of the workers send
// such gradients.
void draw_guard(HuntDraft& draft);
// Workers bring their model, announce the learning rate, and leave at any step.
void draw_scripts(HuntDraft& draft);
void draw_momentum(HuntDraft& draft);

}  // namespace drover
