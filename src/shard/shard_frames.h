// The frames that a shard sends to workers and the evaluator.
#pragma once

#include "shard/shard_state.h"
#include "wire/outbox.h"

namespace drover {

// The answer to a push, or to its offer.
Outgoing answer_frame(WorkerId worker, Step step, const ShardBlock& block, Answer answer);
// Asks the worker to send the bytes of an offer.
Outgoing grant_frame(const Offer& offer);
// The answer to a pull: `values` of that version.
Outgoing parameters_frame(const ShardBlock& block, const Pull& pull, Version version,
                          ConstBuffer values);
// The answer to a pull of a snapshot that is no longer kept.
Outgoing gone_frame(const ShardBlock& block, const Pull& pull);

}  // namespace drover
