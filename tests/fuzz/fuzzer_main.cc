// A libFuzzer program of one target. DROVER_FUZZ_TARGET is the target's function, so that only its
// dependencies are linked.
#include <cstdint>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  drover::fuzz::DROVER_FUZZ_TARGET(std::as_bytes(std::span(data, size)));
  return 0;
}
