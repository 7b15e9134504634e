// Which models there are, and what data each can learn from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "tasks/data/dataset.h"

namespace drover {

// Characters the transformer sees at once; a sample of text is a window of one more.
inline constexpr uint32_t kTextContext = 64;

std::vector<std::string_view> known_models();

// Answers an unknown model with the nearest name. Asked before the data is read.
Status check_model_name(const std::string& model);

// Whether the model can learn from the data, and if not, which can. REQUIRES: check_model_name is
// fine.
Status check_model_fits(const std::string& model, const Dataset& dataset);

}  // namespace drover
