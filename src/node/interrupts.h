// Handling of Ctrl-C (SIGINT) and SIGTERM, for commands that clean up before they end.
#pragma once

namespace drover {

// From now on a signal does not end the process, but is recorded.
void listen_for_interrupts();
// Whether a signal has come since.
bool interrupted();
// From now on the next signal ends the process, which is the default. interrupted() is not reset.
void interrupts_end_the_process();

}  // namespace drover
