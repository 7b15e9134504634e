// Where models are fitted: in the background of a run, and in the virtual time of a replay or a
// simulation. libtorch is loaded when the first fit begins, and not before.
#pragma once

#include "forecast/learned/fitting.h"
#include "policy/catalogue.h"

namespace drover {

// That it could not be loaded is the answer of the fit.
FitFunction lazy_fit_function();

// Beside a live run.
FitterMaker background_fitters();
// For replays and simulations: a fit is there a fixed number of steps after it began. Ends early
// when the user interrupts.
FitterMaker stepped_fitters();

}  // namespace drover
