#include "worker/training_loop.h"

namespace drover {
namespace {

// Passes on to the session what the task says.
class Relay : public GradientListener {
 public:
  Relay(TrainingSession& session, uint32_t samples) : session_(session), samples_(samples) {}
  bool tensor_ready(uint32_t tensor) override { return session_.tensor_ready(tensor, samples_); }
  bool wanted() override { return session_.wanted(); }

 private:
  TrainingSession& session_;
  const uint32_t samples_;
};

}  // namespace

void training_loop(TrainingSession& session, Task& task, uint32_t worker, uint32_t workers,
                   uint32_t batch) {
  while (const auto step = session.next_step()) {
    // Each step takes workers * batch positions of the stream of samples; a lost worker's stay
    // unused, so that the samples of the others do not depend on who is alive.
    const Batch mine{.first = (*step * workers + worker) * batch, .count = batch};
    Relay relay(session, mine.count);
    session.finish_step(task.gradient(session.parameters(), mine, session.gradient(), relay));
  }
}

}  // namespace drover
