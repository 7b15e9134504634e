// Exports a checkpoint as a model for other tools: one safetensors file with tensors by name.
#pragma once

#include <string>

#include "core/result.h"
#include "store/checkpoint.h"

namespace drover {

// `average`: exports the moving average of the parameters (--ema) instead of the parameters. The
// file is created atomically.
Status export_checkpoint(const Checkpoint& checkpoint, const std::string& path, bool average);

}  // namespace drover
