#include "node/exit.h"

#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

namespace drover {

void exit_soon(int status, std::shared_ptr<MessagePort> port) {
  // Detached: it must end the process while other threads hang.
  std::thread([status, port = std::move(port)] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    if (port) port->finish();
    ::_exit(status);
  }).detach();
}

}  // namespace drover
