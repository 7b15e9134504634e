// The built-in model, for use before a model is fitted to the cluster. It was fitted to many
// synthetic clusters (bench/make_prior.cc).
#pragma once

#include <memory>

#include "forecast/learned/model_weights.h"

namespace drover {

std::shared_ptr<const ModelWeights> prior_model();

}  // namespace drover
