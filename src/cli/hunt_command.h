// drover simulate --hunt: many short runs under random faults, each checked for what must hold.
#pragma once

#include <cstdint>

namespace drover {

struct HuntOptions {
  uint64_t runs = 0;
  uint64_t first_seed = 1;
  bool json = false;
  bool quiet = false;
};

// Ends with the first finding, and says how to repeat it. Returns the exit status.
int hunt_command(const HuntOptions& options);

}  // namespace drover
