// DROVER_CHECK: an assertion that stops the program, in every build.
//
// For conditions that only a bug can violate. Bad input and lost peers are an Error instead.
#pragma once

namespace drover {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace drover

#define DROVER_CHECK(condition)                                               \
  do {                                                                        \
    if (!(condition)) ::drover::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
