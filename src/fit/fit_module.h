// Loads libdrover_fit.so, which fits learned models with libtorch.
#pragma once

#include "core/result.h"
#include "forecast/learned/fitting.h"

namespace drover {

// Takes about half a second the first time, and starts no thread. The function computes on the
// calling thread. Equal requests give bitwise equal results.
Result<FitFunction> load_fit_function();

}  // namespace drover
