// The frames that a shard sends to workers and the evaluator.
#pragma once

#include "shard/shard_state.h"
#include "wire/outbox.h"

namespace drover {

// The answer to a push, or to its offer.
Outgoing answer_frame(WorkerId worker, Step step, const ShardBlock& block, Answer answer);
// The shard wants the bytes of an offer.
Outgoing grant_frame(const Offer& offer);
// What was pulled: `values` of that version.
Outgoing parameters_frame(const ShardBlock& block, const Pull& pull, Version version,
                          ConstBuffer values);
// The snapshot that was pulled is not kept any more.
Outgoing gone_frame(const ShardBlock& block, const Pull& pull);

}  // namespace drover
