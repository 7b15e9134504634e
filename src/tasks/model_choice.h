// The built-in models, and the kinds of data that each can learn from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "tasks/data/dataset.h"

namespace drover {

// Context length of the transformer in characters; a sample of text has one character more.
inline constexpr uint32_t kTextContext = 64;

std::vector<std::string_view> known_models();

// Fails for an unknown model; the error proposes the nearest name. Needs no data.
Status check_model_name(const std::string& model);

// Fails if the model cannot learn from the data; the error names models that can.
// REQUIRES: check_model_name() succeeds.
Status check_model_fits(const std::string& model, const Dataset& dataset);

}  // namespace drover
