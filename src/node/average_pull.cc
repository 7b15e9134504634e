#include "node/average_pull.h"

#include <memory>

namespace drover {

bool AveragePull::begin(WorkerId worker, const BlockPlan& blocks, Step step, Step every,
                        Outbox& out) {
  if (!buffer_) buffer_ = std::make_shared<FloatBuffer>(floats_);
  if (!pull_) pull_.emplace(worker, blocks, PullKind::kSnapshot);
  blocks_ = blocks.blocks.size();
  if (every == 0 || step < every) return false;
  pull_->begin(step / every * every, out);
  return true;
}

Status AveragePull::on_frame(const FrameHeader& header, Outbox& out) {
  if (!pull_ || header.block >= blocks_)
    return invalid_input("parameters to evaluate that were not requested");
  if (!pull_->expects(header)) return done();
  if (header.type == FrameType::kGone) pull_->on_gone(header, out);
  if (header.type == FrameType::kParameters) pull_->on_parameters(header, out);
  return done();
}

}  // namespace drover
