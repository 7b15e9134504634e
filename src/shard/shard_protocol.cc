#include "shard/shard_protocol.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/random_draw.h"
#include "shard/shard_frames.h"

namespace drover {

bool ShardProtocol::serve(HostedBlock& hosted, const Pull& pull, TimePoint now, Outbox& out) {
  const ShardBlock& block = hosted.block;
  if (!state_.open || !block.started()) return false;
  if (!pull.snapshot && state_.knows(pull.worker)) return serve_worker(hosted, pull, now, out);
  if (block.version() < pull.version) return false;
  if (!pull.snapshot) {
    out.push_back(parameters_frame(block, pull, block.version(), block.parameters()));
  } else if (ConstBuffer values = block.snapshot(pull.version)) {
    out.push_back(parameters_frame(block, pull, pull.version, std::move(values)));
  } else {
    out.push_back(gone_frame(block, pull));
  }
  return true;
}

void ShardProtocol::serve_waiting(HostedBlock& hosted, TimePoint now, Outbox& out) {
  std::erase_if(hosted.pulls, [&](const Pull& pull) { return serve(hosted, pull, now, out); });
}

void ShardProtocol::serve_all(TimePoint now, Outbox& out) {
  for (auto& [id, hosted] : state_.blocks) serve_waiting(*hosted, now, out);
}

void ShardProtocol::answer(const Push& push, Answer answer, Outbox& out) {
  out.push_back(answer_frame(push.worker, push.step, push.hosted.block, answer));
}

Status ShardProtocol::enqueue(const Push& push, Outbox& out) {
  const Block& block = push.hosted.block.block();
  switch (state_.offers.add({.worker = push.worker,
                             .step = push.step,
                             .block = block.id,
                             .bytes = block.length * sizeof(float)})) {
    case OfferQueue::Added::kYes:
      break;
    case OfferQueue::Added::kAgain:
      answer(push, Answer::kDuplicate, out);
      break;
    case OfferQueue::Added::kTooMany:
      return invalid_input("worker " + std::to_string(push.worker) +
                           " has too many open offers of block " + std::to_string(block.id));
  }
  return done();
}

void ShardProtocol::note_outlier(const Push& push, Step step, Answer answer) {
  const ShardBlock& block = push.hosted.block;
  const std::optional<double>& ratio = block.outlier_ratio();
  if (!ratio || (answer != Answer::kAccepted && answer != Answer::kOutlier)) return;
  state_.tally.on_outlier(push.worker, step, block.block().id, *ratio, answer == Answer::kAccepted);
}

void ShardProtocol::close_step_if_done(TimePoint now, Outbox& out) {
  StepTally& tally = state_.tally;
  const auto behind = [&](const auto& entry) {
    return entry.second->block.version() <= tally.step();
  };
  if (state_.finished() || std::any_of(state_.blocks.begin(), state_.blocks.end(), behind)) return;
  StepClosed closed = tally.summary(now);
  on_step_closing(closed);
  tally.open_next(now);
  const Plan& plan = state_.plan;
  if (state_.finished()) closed.digest = digest();
  if (plan.standby || is_checkpoint(tally.step(), plan.checkpoint_every, plan.steps))
    gather_checkpoint();
  out.push_back({to_coordinator(), control_frame(std::move(closed))});
}

void ShardProtocol::gather_checkpoint() {
  CheckpointPart part{.shard = state_.id, .version = state_.tally.step(), .blocks = {}};
  for (auto& [id, hosted] : state_.blocks) {
    std::optional<SavedBlock> saved = hosted->block.take_saved(part.version);
    DROVER_CHECK(saved.has_value());
    part.blocks.push_back(std::move(*saved));
  }
  state_.checkpoints.push_back(std::move(part));
}

// A sum over all values and their positions, which does not depend on how tensors are divided into
// blocks and blocks among shards.
uint64_t ShardProtocol::digest() const {
  uint64_t sum = 0;
  for (const auto& [id, hosted] : state_.blocks) {
    uint64_t place = hosted->block.block().offset;
    for (const float value : hosted->block.parameters()->span()) {
      // Zeros do not count: there is zero padding between the tensors of one block.
      const auto bits = std::bit_cast<uint32_t>(value);
      if (bits != 0) sum += mix_bits(mix_bits(place) ^ bits);
      ++place;
    }
  }
  return sum;
}

}  // namespace drover
