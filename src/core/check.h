// DROVER_CHECK: our own bugs stop the program, in every build.
//
// For what the outside world can cause (bad input, a lost peer) return an Error instead.
#pragma once

namespace drover {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace drover

#define DROVER_CHECK(condition)                                               \
  do {                                                                        \
    if (!(condition)) ::drover::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
