// The coordinator's part in checkpoints: shards save theirs by themselves, here they are counted.
#include <algorithm>

#include "coordinator/coordinator.h"

namespace drover {

Status Coordinator::on_checkpoint_saved(ShardId shard, const CheckpointSaved& saved, TimePoint now,
                                        CoordinatorOutput& out) {
  if (!is_checkpoint(saved.version, settings_.checkpoint_every, settings_.steps) || !ledger_ ||
      saved.version > std::min<Step>(settings_.steps, step_ + kEarlyMax) ||
      !blocks_on_.contains(shard)) {
    return invalid_input("shard " + std::to_string(shard) + " saved a checkpoint of step " +
                         std::to_string(saved.version) + ", which was not wanted");
  }
  auto& parts = checkpoints_[saved.version];
  parts[shard] = saved;
  if (saved.failure != CheckpointFailure::kNone) {
    fail_checkpoint(Peer{Role::kShard, shard},
                    {.version = saved.version,
                     .cause = saved.failure,
                     .os_error = saved.os_error,
                     .detail = saved.error},
                    now, out);
  }
  if (parts.size() < blocks_on_.size()) return done();
  const auto whole = checkpoints_.extract(saved.version);
  const auto fine = [](const auto& part) {
    return part.second.failure == CheckpointFailure::kNone;
  };
  if (std::all_of(whole.mapped().begin(), whole.mapped().end(), fine)) {
    CheckpointReady ready{.version = saved.version,
                          .parts = {},
                          .settings = model_.settings(),
                          .noise = ledger_->noise(),
                          .tensors = model_.layout()->tensors()};
    uint64_t& bytes = checkpoint_bytes_[saved.version];
    for (const auto& [from, part] : whole.mapped()) {
      bytes += part.bytes;
      ready.parts.push_back(part);
    }
    out.checkpoints.push_back(std::move(ready));
  }
  end_if_complete(now, out);
  return done();
}

void Coordinator::on_checkpoint_kept(Version version, const Status& kept, Duration took,
                                     TimePoint now, CoordinatorOutput& out) {
  const auto bytes = checkpoint_bytes_.extract(version);
  if (phase_ == Phase::kEnded) return;
  if (!kept) {
    const Error& why = kept.error();
    fail_checkpoint(
        {},
        {.version = version,
         .cause = why.os_error != 0 ? CheckpointFailure::kSystem : CheckpointFailure::kOther,
         .os_error = why.os_error,
         .detail = why.message},
        now, out);
  } else {
    told_failures_.clear();
    checkpoint_there_ = true;
    report({},
           event::CheckpointKept{
               .version = version, .bytes = bytes.empty() ? 0 : bytes.mapped(), .took = took},
           now, out);
    last_checkpoint_over_ = last_checkpoint_over_ || version == settings_.steps;
  }
  end_if_complete(now, out);
}

// The run continues, and the next one is tried. A failure with the same cause as one since the last
// checkpoint that was kept is not reported again.
void Coordinator::fail_checkpoint(const std::optional<Peer>& peer,
                                  const event::CheckpointFailed& failed, TimePoint now,
                                  CoordinatorOutput& out) {
  last_checkpoint_over_ = last_checkpoint_over_ || failed.version == settings_.steps;
  if (!told_failures_.insert({failed.cause, failed.os_error}).second) return;
  report(peer, failed, now, out);
}

bool Coordinator::await_checkpoint() const {
  return settings_.checkpoint_every > 0 && !last_checkpoint_over_;
}

}  // namespace drover
