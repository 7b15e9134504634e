// One target as a program of libFuzzer's, which has main(). DROVER_FUZZ_TARGET is the target's
// function: so only what it needs is linked.
#include <cstdint>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  drover::fuzz::DROVER_FUZZ_TARGET(std::as_bytes(std::span(data, size)));
  return 0;
}
