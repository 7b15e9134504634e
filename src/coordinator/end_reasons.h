// Human-readable reasons why a run ends early. Code uses EndCause instead.
#pragma once

#include <cstdint>
#include <string>

#include "core/event.h"
#include "core/ids.h"
#include "core/peer.h"
#include "core/time.h"

namespace drover {

// A process that served a shard was lost. `checkpoints`: the folder with a kept checkpoint, or "".
std::string server_lost_reason(const Peer& server, const Loss& why, Step step,
                               const std::string& checkpoints);
// A worker was lost that the run cannot continue without.
std::string rank_lost_reason(const Peer& worker, const Loss& why);
// No gradient of `steps` steps in a row was usable.
std::string diverged_reason(uint32_t steps);
// `steps`: the number of steps of the run, or kEndless.
std::string interrupted_reason(Step step, Step steps);
// Not all processes were ready after the coordinator had waited for `waited`.
std::string not_ready_reason(Duration waited);

}  // namespace drover
