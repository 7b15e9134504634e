#include "node/evaluator_node.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "core/float_buffer.h"
#include "core/mutex.h"
#include "node/attempts.h"
#include "node/exit.h"
#include "worker/parameter_pull.h"

namespace drover {
namespace {

class Evaluator : public Member::Handler {
 public:
  Evaluator(const EvaluatorSettings& settings, Task& task)
      : settings_(settings),
        task_(task),
        parameters_(std::make_shared<FloatBuffer>(task.layout().buffer_size())),
        member_(settings.identity, task.layout(), *this, {}) {}

  Attempt run() {
    if (const Status started = member_.start(); !started)
      return {.exit_status = 1, .again = true, .why = started.error().message};
    Version version = 0;
    while (const auto fetched = fetch_after(version)) {
      version = *fetched;
      const Evaluation evaluation = task_.evaluate(parameters_->span());
      if (version == last_version() || is_enough(evaluation)) save();
      member_.send({{to_coordinator(), control_frame(Evaluated{.version = version,
                                                               .loss = evaluation.loss,
                                                               .accuracy = evaluation.accuracy,
                                                               .samples = evaluation.samples})}});
    }
    const MutexLock lock(mutex_);
    return end_;
  }

  // --- the connections' thread

  void on_welcome(const Welcome& welcome) override {
    const MutexLock lock(mutex_);
    welcome_ = welcome;
    pull_.emplace(kEvaluator, welcome_.blocks, PullKind::kSnapshot);
  }
  void on_connected(bool) override {
    const MutexLock lock(mutex_);
    connected_ = true;
    changed_.notify_all();
  }
  Result<std::span<std::byte>> payload_for(ShardId shard, const FrameHeader& header) override {
    const MutexLock lock(mutex_);
    const auto& blocks = welcome_.blocks.blocks;
    if (!fetching_ || header.block >= blocks.size() || blocks[header.block].shard != shard ||
        header.length != blocks[header.block].length * sizeof(float)) {
      return invalid_input("shard " + std::to_string(shard) +
                           " sent parameters that were not requested");
    }
    const Block& block = blocks[header.block];
    return std::as_writable_bytes(parameters_->span().subspan(block.offset, block.length));
  }
  bool expects(const FrameHeader& header) override {
    const MutexLock lock(mutex_);
    return fetching_ && pull_->expects(header);
  }
  Status on_frame(ShardId, const FrameHeader& header) override {
    const MutexLock lock(mutex_);
    Outbox out;
    if (header.block >= welcome_.blocks.blocks.size()) return invalid_input("no such block");
    if (fetching_ && pull_->expects(header)) {
      if (header.type == FrameType::kParameters) pull_->on_parameters(header, out);
      if (header.type == FrameType::kGone) pull_->on_gone(header, out);
    }
    member_.send(std::move(out));
    if (pull_->complete()) changed_.notify_all();
    return done();
  }
  void on_want_initial(ShardId) override {}
  void on_stop(Step) override {}
  void on_share(const Share&) override {}
  void on_pull_share(const PullShare&) override {}
  void on_floats_sent(const ConstBuffer&) override {}
  void on_over(const Farewell& farewell) override {
    const MutexLock lock(mutex_);
    over_ = true;
    const bool failed = farewell.outcome == RunOutcome::kFailed;
    end_ = {.exit_status = failed ? 1 : 0,
            .again = farewell.rejoin,
            .joined = connected_,
            .why = farewell.reason};
    changed_.notify_all();
    if (farewell.rejoin) return;
    if (failed) spdlog::error("stopping: {}", farewell.reason);
    exit_soon(end_.exit_status);
  }

 private:
  Version last_version() {
    const MutexLock lock(mutex_);
    return welcome_.steps;
  }

  bool is_enough(const Evaluation& evaluation) const {
    return settings_.stop_at && settings_.stop_at->reached_by(evaluation.loss, evaluation.accuracy);
  }

  // Waits for the parameters of the next version after `version` that is due.
  std::optional<Version> fetch_after(Version version) {
    const MutexLock lock(mutex_);
    while (!over_ && !connected_) changed_.wait(mutex_);
    if (over_) return std::nullopt;
    if (version >= welcome_.steps) {
      while (!over_) changed_.wait(mutex_);
      return std::nullopt;
    }
    const Step every = welcome_.evaluate_every == 0 ? welcome_.steps : welcome_.evaluate_every;
    Outbox out;
    fetching_ = true;
    pull_->begin(std::min<Version>((version / every + 1) * every, welcome_.steps), out);
    member_.send(std::move(out));
    while (!over_ && !pull_->complete()) changed_.wait(mutex_);
    fetching_ = false;
    if (over_) return std::nullopt;
    return pull_->version();
  }

  void save() {
    if (settings_.save_model.empty()) return;
    const Status saved = task_.save(parameters_->span(), settings_.save_model);
    if (!saved) spdlog::error("cannot save the model: {}", saved.error().message);
  }

  const EvaluatorSettings settings_;
  Task& task_;
  const SharedBuffer parameters_;

  Mutex mutex_;
  ConditionVariable changed_;
  Welcome welcome_ DROVER_GUARDED_BY(mutex_);
  std::optional<ParameterPull> pull_ DROVER_GUARDED_BY(mutex_);
  bool connected_ DROVER_GUARDED_BY(mutex_) = false;
  bool fetching_ DROVER_GUARDED_BY(mutex_) = false;
  bool over_ DROVER_GUARDED_BY(mutex_) = false;
  Attempt end_ DROVER_GUARDED_BY(mutex_);

  Member member_;  // last: its thread must end before what it uses does
};

}  // namespace

int run_evaluator(const EvaluatorSettings& settings, Task& task) {
  return run_attempts(settings.rejoin_for, [&] { return Evaluator(settings, task).run(); });
}

}  // namespace drover
