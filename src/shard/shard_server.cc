#include "shard/shard_server.h"

#include <utility>

#include "core/check.h"

namespace drover {

Result<bool> ShardServer::on_plan(const Plan& plan) {
  DROVER_CHECK(!plan_);
  plan_ = plan;
  if (plan.kept) {
    const auto blocks = kept_blocks();
    kept_.keep_only(*plan.kept);
    if (!blocks) return blocks.error();
    start(blocks.value());
    return true;
  }
  kept_.clear();
  if (!plan.resume_from.empty()) return false;
  shard_.on_plan(plan);
  return true;
}

void ShardServer::start(const std::vector<SavedBlock>& saved) {
  shard_.on_plan(*plan_);
  shard_.restore(saved);
}

Result<std::vector<SavedBlock>> ShardServer::kept_blocks() const {
  const CheckpointPart* const part = kept_.find(*plan_->kept);
  std::vector<SavedBlock> blocks = part ? part->blocks : std::vector<SavedBlock>();
  auto next = blocks.begin();
  for (const Block& block : plan_->blocks.blocks) {
    if (block.shard != id_) continue;
    if (next == blocks.end() || next->offset != block.offset || next->length != block.length)
      return invalid_input(peer_name(role_, id_) +
                           " does not have the version in memory that the run continues from");
    ++next;
  }
  return blocks;
}

void ShardServer::on_decision(const Decision& decision, TimePoint now, Outbox& out) {
  shard_.on_decision(decision, now, out);
  source_.on_decision(decision.step);
}

Status ShardServer::on_length(Step steps) {
  const Status may = shard_.on_length(steps);
  if (may) plan_->steps = steps;
  return may;
}

std::vector<CheckpointPart> ShardServer::take_checkpoints(Outbox& out) {
  std::vector<CheckpointPart> due;
  while (auto part = shard_.take_checkpoint()) {
    if (is_checkpoint(part->version, plan_->checkpoint_every, plan_->steps)) due.push_back(*part);
    // The last version may be saved a second time; see Shard::on_length().
    if (!plan_->standby || replicated_ == part->version) continue;
    replicated_ = part->version;
    source_.on_version(std::move(*part), plan_->incarnation, out);
  }
  return due;
}

Status ShardServer::on_standby(ShardId theirs, Outbox& out) {
  if (!plan_ || !plan_->standby || theirs != id_)
    return invalid_input("it is the standby of another shard");
  source_.on_standby(out);
  return done();
}

}  // namespace drover
