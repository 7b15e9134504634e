// Ending a process that must not linger.
#pragma once

namespace drover {

// Ends this process with `status` in a second, whatever it is doing then; it should be gone by
// itself before.
void exit_soon(int status);

}  // namespace drover
