// The model file: a learned model on disk, versioned, checksummed, the same on every machine.
#pragma once

#include <string>

#include "core/result.h"
#include "forecast/learned/model_weights.h"

namespace drover {

// As bytes; little-endian whatever the machine.
std::string encode_model(const ModelWeights& weights);
// `name` is for messages. Refused with the reason: what is no model, is cut off or damaged, was
// written by a newer drover, or does not agree with itself; nothing large is allocated before the
// sizes have been checked.
Result<ModelWeights> decode_model(std::string_view bytes, const std::string& name);

Result<ModelWeights> read_model(const std::string& path);

}  // namespace drover
