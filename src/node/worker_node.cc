#include "node/worker_node.h"

#include <spdlog/spdlog.h>

#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "node/attempts.h"
#include "node/host.h"
#include "worker/training_loop.h"

namespace drover {
namespace {

// Only the first line of the message: libtorch appends a stack trace.
std::string explain(const std::exception& trouble) {
  const std::string text = trouble.what();
  const std::string reason = "cannot compute a gradient: " + text.substr(0, text.find('\n'));
  const bool memory = dynamic_cast<const std::bad_alloc*>(&trouble) != nullptr ||
                      dynamic_cast<const OutOfMemory*>(&trouble) != nullptr;
  return memory ? reason + ". Try a smaller --batch, or fewer workers" : reason;
}

constexpr Duration kAskEvery = std::chrono::milliseconds(200);

// A session that also ends when its worker wants to leave.
class UntilItLeaves : public TrainingSession {
 public:
  UntilItLeaves(LiveSession& session, std::function<bool()> wants_to_leave)
      : session_(session), wants_to_leave_(std::move(wants_to_leave)) {}

  std::optional<Step> next_step() override {
    if (!wants_to_leave_) return session_.next_step();
    session_.ask_for_step();
    while (!wants_to_leave_()) {
      const auto waited = session_.wait_for_step(kAskEvery);
      if (waited == LiveSession::Waited::kOver) return std::nullopt;
      if (waited) return session_.step();
    }
    left_ = true;
    return std::nullopt;
  }
  Batch batch() const override { return session_.batch(); }
  std::span<const float> parameters() const override { return session_.parameters(); }
  std::span<float> gradient() override { return session_.gradient(); }
  bool tensor_ready(uint32_t tensor, uint32_t samples) override {
    return session_.tensor_ready(tensor, samples);
  }
  bool wanted() override { return session_.wanted(); }
  void finish_step(const GradientReport& report) override { session_.finish_step(report); }

  bool left() const { return left_; }

 private:
  LiveSession& session_;
  const std::function<bool()> wants_to_leave_;
  bool left_ = false;
};

Attempt train(LiveSession& session, const WorkerSettings& settings, Task& task) {
  task.initial_parameters(session.initial_parameters());
  if (const Status started = session.start(); !started)
    return {.exit_status = 1, .again = true, .why = started.error().message};
  UntilItLeaves staying(session, settings.wants_to_leave);
  try {
    training_loop(staying, task);
  } catch (const std::exception& trouble) {
    // Tasks use libtorch, which throws, most often when memory is exhausted.
    const std::string reason = explain(trouble);
    spdlog::error("{}", reason);
    session.leave(reason);
    return {.exit_status = 1};
  }
  if (staying.left()) {
    session.leave("interrupted by its user");
    return {};
  }
  const Farewell farewell = session.farewell().value_or(Farewell{});
  if (settings.port && farewell.outcome == RunOutcome::kCompleted) settings.port->finish();
  return {.exit_status = farewell.outcome == RunOutcome::kFailed ? 1 : 0,
          .again = farewell.rejoin,
          .joined = session.was_connected(),
          .why = farewell.reason};
}

}  // namespace

int run_worker(const WorkerSettings& settings, Task& task) {
  keep_freed_memory();
  const auto session = LiveSession::create(settings, task.layout());
  if (!session) {
    spdlog::error("{}", session.error().message);
    return 1;
  }
  return run_attempts(settings.rejoin_for, [&] { return train(*session.value(), settings, task); });
}

}  // namespace drover
