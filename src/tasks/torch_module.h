// Loads libdrover_torch.so, which brings libtorch with it.
#pragma once

#include "core/program_module.h"

namespace drover {

// As messages call it.
ModuleName torch_module_name();

// Takes about half a second the first time and starts no thread.
Result<ProgramModule> open_torch_module();

}  // namespace drover
