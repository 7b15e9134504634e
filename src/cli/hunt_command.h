// drover simulate --hunt: many short simulated runs under random faults; each is checked for
// violated invariants.
#pragma once

#include <cstdint>

namespace drover {

struct HuntOptions {
  uint64_t runs = 0;
  uint64_t first_seed = 1;
  bool json = false;
  bool quiet = false;
};

// Stops at the first violation and prints how to reproduce it. Returns the exit status.
int hunt_command(const HuntOptions& options);

}  // namespace drover
