// Ctrl-C (SIGINT) and SIGTERM, for commands that end in good order instead of being killed.
#pragma once

namespace drover {

// From now on a signal does not end the process, but is remembered.
void listen_for_interrupts();
// Whether one has come since.
bool interrupted();
// From now on the next one ends the process, as usual. What has come is not forgotten.
void interrupts_end_the_process();

}  // namespace drover
