#include "sim/simulated_evaluator.h"

#include <algorithm>
#include <utility>

namespace drover {

SimulatedEvaluator::SimulatedEvaluator(Task& task, uint32_t shards,
                                       std::function<void(Outbox)> send)
    : task_(task),
      shards_(shards),
      send_(std::move(send)),
      parameters_(std::make_shared<FloatBuffer>(task.layout().buffer_size())) {}

void SimulatedEvaluator::on_welcome(const Welcome& welcome) {
  welcome_ = welcome;
  pull_.emplace(kEvaluator, welcome_.blocks, PullKind::kSnapshot);
}

void SimulatedEvaluator::on_connected(ShardId shard) {
  connected_.insert(shard);
  if (connected_.size() == shards_) fetch_next();
}

void SimulatedEvaluator::fetch_next() {
  if (over_ || version_ >= welcome_.steps) return;
  const Step every = welcome_.evaluate_every == 0 ? welcome_.steps : welcome_.evaluate_every;
  Outbox out;
  fetching_ = true;
  pull_->begin(std::min<Version>((version_ / every + 1) * every, welcome_.steps), out);
  send_(std::move(out));
}

void SimulatedEvaluator::on_frame(const FrameHeader& header, std::span<const float> floats) {
  if (over_ || !fetching_ || !pull_->expects(header)) return;
  Outbox out;
  if (header.type == FrameType::kParameters) {
    std::copy(floats.begin(), floats.end(),
              parameters_->data() + welcome_.blocks.blocks[header.block].offset);
    pull_->on_parameters(header, out);
  } else if (header.type == FrameType::kGone) {
    pull_->on_gone(header, out);
  }
  send_(std::move(out));
  if (!pull_->complete()) return;
  fetching_ = false;
  version_ = pull_->version();
  const Evaluation evaluation = task_.evaluate(parameters_->span());
  send_({{to_coordinator(), control_frame(Evaluated{.version = version_,
                                                    .loss = evaluation.loss,
                                                    .accuracy = evaluation.accuracy,
                                                    .samples = evaluation.samples})}});
  fetch_next();
}

}  // namespace drover
