// Asking a run that goes on already for a place as a worker.
#pragma once

#include <string>

#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "node/doorman.h"

namespace drover {

struct Place {
  WorkerId worker = 0;  // to join as, soon: the place is not kept for long
  std::string job;      // as a job file
};

// `address` is the coordinator's.
Result<Place> ask_for_place(const std::string& address, const RunKey& key, Duration patience);

}  // namespace drover
