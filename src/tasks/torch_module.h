// Finds and loads libdrover_torch.so, which brings libtorch with it.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace drover {

// Where the module may lie, in the order of looking: beside the running program, in ../lib/drover,
// and one folder up (tests run from build/<preset>/bin).
std::vector<std::string> module_candidates();

struct TorchModule {
  std::string path;
  void* handle =
      nullptr;  // for dlsym; loaded once and never closed, since libtorch cannot be unloaded
};

// Takes about half a second the first time and starts no thread.
Result<TorchModule> open_torch_module();

}  // namespace drover
