// One target as a program of libFuzzer's, which has main().
#include <algorithm>
#include <cstdint>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto target =
      std::ranges::find(drover::fuzz::targets(), DROVER_FUZZ_TARGET, &drover::fuzz::Target::name);
  target->run(std::as_bytes(std::span(data, size)));
  return 0;
}
