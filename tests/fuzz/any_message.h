// Control messages with any content, near enough to what makes sense at a step to get somewhere.
#pragma once

#include "core/ids.h"
#include "fuzz/choices.h"
#include "wire/control.h"

namespace drover::fuzz {

// Whether it is within the limits of the wire is not said: encode it and see.
Control any_message(Choices& choices, Step step);

}  // namespace drover::fuzz
