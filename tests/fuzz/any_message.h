// Control messages with arbitrary content, close enough to a step's valid messages to be accepted
// sometimes.
#pragma once

#include "core/ids.h"
#include "fuzz/choices.h"
#include "wire/control.h"

namespace drover::fuzz {

// The message may exceed the limits of the wire: encoding it shows that.
Control any_message(Choices& choices, Step step);

}  // namespace drover::fuzz
