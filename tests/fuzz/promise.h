// promise(): what a target holds the code to. A broken one ends the program, which is how a fuzzer
// learns of it.
#pragma once

#include <string>

namespace drover::fuzz {

// Ends the program with `what` and the name of the input, unless it is `kept`.
void promise(bool kept, const char* what);

// What is being tried, for that message; a fuzzer keeps its inputs itself.
void name_input(std::string name);

}  // namespace drover::fuzz
