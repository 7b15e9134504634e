// Why a run ends early, in words for people. Code goes by EndCause.
#pragma once

#include <cstdint>
#include <string>

#include "core/event.h"
#include "core/ids.h"
#include "core/peer.h"
#include "core/time.h"

namespace drover {

// A process that served a shard was lost. `checkpoints`: the folder, if one was kept there; or "".
std::string server_lost_reason(const Peer& server, const Loss& why, Step step,
                               const std::string& checkpoints);
// A worker of a run that cannot continue without it was lost.
std::string rank_lost_reason(const Peer& worker, const Loss& why);
// `steps` in a row had no usable gradient.
std::string diverged_reason(uint32_t steps);
// `steps`: of the run; kEndless: it has no last one.
std::string interrupted_reason(Step step, Step steps);
// Not all processes were ready when they had been waited for.
std::string not_ready_reason(Duration waited);

}  // namespace drover
