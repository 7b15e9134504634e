// Fitters for policies with a learned model, in the virtual time of a replay.
#pragma once

#include "policy/catalogue.h"

namespace drover {

// libtorch is loaded when the first fit begins.
FitterMaker bench_fitters();

}  // namespace drover
