// Loads libdrover_torch.so, which links libtorch.
#pragma once

#include "core/program_module.h"

namespace drover {

// The module's name in messages.
ModuleName torch_module_name();

// Takes about half a second the first time. Starts no thread.
Result<ProgramModule> open_torch_module();

}  // namespace drover
