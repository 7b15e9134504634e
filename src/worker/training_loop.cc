#include "worker/training_loop.h"

namespace drover {
namespace {

// Passes the task's calls to the session.
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

void training_loop(TrainingSession& session, Task& task) {
  while (session.next_step()) {
    const Batch batch = session.batch();
    Relay relay(session, batch.count);
    session.finish_step(task.gradient(session.parameters(), batch, session.gradient(), relay));
  }
}

}  // namespace drover
