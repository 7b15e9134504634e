#include "node/interrupts.h"

#include <csignal>

namespace drover {
namespace {

// A signal handler may only write to such a variable.
volatile std::sig_atomic_t signal_came = 0;

}  // namespace

void listen_for_interrupts() {
  signal_came = 0;
  std::signal(SIGINT, [](int) { signal_came = 1; });
  std::signal(SIGTERM, [](int) { signal_came = 1; });
}

bool interrupted() { return signal_came != 0; }

void interrupts_end_the_process() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace drover
