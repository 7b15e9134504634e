// Asking a run that goes on already for a place as a worker.
#pragma once

#include <string>

#include "core/result.h"
#include "core/time.h"
#include "node/acceptor.h"
#include "wire/control.h"

namespace drover {

// `address` is the coordinator's.
Result<PlaceOffer> ask_for_place(const std::string& address, const RunKey& key, Duration patience);

}  // namespace drover
