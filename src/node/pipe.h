// A pipe between processes, of which one is forked from the other.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/result.h"

namespace drover {

// Children inherit it; each end is closed with the process that holds it.
struct Pipe {
  int from = -1;
  int to = -1;
};

// `flags` as for pipe2().
inline Result<Pipe> make_pipe(int flags) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, flags) != 0)
    return system_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  return Pipe{ends[0], ends[1]};
}

}  // namespace drover
