#include "tasks/torch_module.h"

#include "tasks/module_entry.h"

namespace drover {

ModuleName torch_module_name() { return {kModuleFile, "the models are", "drover_torch"}; }

Result<ProgramModule> open_torch_module() { return open_program_module(torch_module_name()); }

}  // namespace drover
