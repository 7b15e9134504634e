// A checkpoint as a model for other tools: its tensors by name, in one safetensors file.
#pragma once

#include <string>

#include "core/result.h"
#include "store/checkpoint.h"

namespace drover {

// `average`: the moving average of the parameters, where the run keeps one, instead of the
// parameters themselves. The file appears only when it is whole.
Status export_checkpoint(const Checkpoint& checkpoint, const std::string& path, bool average);

}  // namespace drover
