// The model file: a learned model on disk, versioned, checksummed, portable between machines.
#pragma once

#include <string>

#include "core/result.h"
#include "forecast/learned/model_weights.h"

namespace drover {

// Little-endian on every machine.
std::string encode_model(const ModelWeights& weights);
// `name` is for messages. Fails if the bytes are not a model, are truncated or damaged, are
// inconsistent, or were written by a newer drover. Allocates nothing large before it has checked
// the sizes.
Result<ModelWeights> decode_model(std::string_view bytes, const std::string& name);

Result<ModelWeights> read_model(const std::string& path);

}  // namespace drover
