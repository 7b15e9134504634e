// A pipe between a process and its child.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/result.h"

namespace drover {

// The ends are plain descriptors: children inherit them, and they are closed when processes exit.
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
