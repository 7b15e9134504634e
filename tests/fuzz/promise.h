// promise(): an assertion of a target. A violation ends the program, which the fuzzer reports.
#pragma once

#include <string>

namespace drover::fuzz {

// Ends the program with a message of `what` and the input's name, unless `kept`.
void promise(bool kept, const char* what);

// Sets the input's name for that message. Fuzzers save their inputs themselves.
void name_input(std::string name);

}  // namespace drover::fuzz
