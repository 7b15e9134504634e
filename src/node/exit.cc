#include "node/exit.h"

#include <unistd.h>

#include <chrono>
#include <thread>

namespace drover {

void exit_soon(int status) {
  // Detached, because its only purpose is to outlive whatever hangs.
  std::thread([status] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    ::_exit(status);
  }).detach();
}

}  // namespace drover
