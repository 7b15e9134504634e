#include "core/check.h"

#include <cstdio>
#include <cstdlib>

namespace drover {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(
      stderr,
      "drover: internal error: '%s' does not hold at %s:%d.\n"
      "This is a bug in drover, not in your input. Please report it with the command you ran.\n",
      condition, file, line);
  std::abort();
}

}  // namespace drover
