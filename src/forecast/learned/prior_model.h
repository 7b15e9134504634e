// The model that is there before anything was seen: fitted to many made-up clusters
// (bench/make_prior.cc), it knows what all clusters have in common.
#pragma once

#include <memory>

#include "forecast/learned/model_weights.h"

namespace drover {

std::shared_ptr<const ModelWeights> prior_model();

}  // namespace drover
