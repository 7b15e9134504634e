// Fitting of models: in the background of a run, and in the virtual time of a replay or a
// simulation. libtorch is loaded when the first fit begins.
#pragma once

#include "forecast/learned/fitting.h"
#include "policy/catalogue.h"

namespace drover {

// Loads libtorch at its first call, and returns an error if that fails.
FitFunction lazy_fit_function();

// For live runs.
FitterMaker background_fitters();
// For replays and simulations: the result is available a fixed number of steps after the fit began.
// A fit ends early when the user interrupts.
FitterMaker stepped_fitters();

}  // namespace drover
