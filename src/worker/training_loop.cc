#include "worker/training_loop.h"

namespace drover {

void training_loop(TrainingSession& session, Task& task, uint32_t worker, uint32_t workers,
                   uint32_t batch) {
  while (const auto step = session.next_step()) {
    // Each step takes workers * batch positions of the stream of samples; a lost worker's stay
    // unused, so that the samples of the others do not depend on who is alive.
    const Batch mine{.first = (*step * workers + worker) * batch, .count = batch};
    const GradientReport report =
        task.gradient(session.parameters(), mine, session.gradient(),
                      [&](uint32_t tensor) { return session.tensor_ready(tensor, batch); });
    session.finish_step(report);
  }
}

}  // namespace drover
