// The coordinator's part in standbys: who serves a shard, and what a run that starts over can go on
// from without a checkpoint.
#include <algorithm>

#include "coordinator/coordinator.h"
#include "core/event_text.h"

namespace drover {

void Coordinator::plan_if_settled(TimePoint now, CoordinatorOutput& out) {
  if (!model_.layout() || phase_ != Phase::kGathering) return;
  std::optional<std::pair<KeptVersion, std::set<ShardId>>> kept;
  if (settings_.resume && settings_.resume->kept)
    kept.emplace(*settings_.resume->kept, settings_.resume->keepers);
  switch (servers_.settle(kept, now - started_ >= kKeeperAwaited)) {
    case ShardAssignment::Settled::kNotYet:
      return;
    case ShardAssignment::Settled::kYes:
      return send_plans(out);
    case ShardAssignment::Settled::kNever:
      kept_by_nobody_ = true;
      return start_over(event::RestartCause::kStateLost, {},
                        "no process keeps all of step " + std::to_string(step_), now, out);
  }
}

// A process for a shard was lost. One that stands by is missed only if the other is lost, too.
void Coordinator::lose_server(Role role, ShardId shard, const Loss& why, TimePoint now,
                              CoordinatorOutput& out) {
  const Peer peer{role, shard};
  if (settings_.standby && !servers_.serves(role, shard)) {
    servers_.on_lost(role, shard);
    return report(
        peer,
        event::Lost{
            .loss = why, .effect = event::LossEffect::kUnprotected, .fallback = restart_point()},
        now, out);
  }
  report(peer, event::Lost{.loss = why}, now, out);
  if (settings_.recovers)
    return start_over(event::RestartCause::kServerLost, peer, name_of(peer) + " was lost", now,
                      out);
  end(RunOutcome::kFailed, EndCause::kServerLost,
      name_of(peer) + " was lost at step " + std::to_string(step_) + " (" + loss_text(why) +
          "); its part of the parameters is gone, so the run cannot go on" +
          (checkpoints_.any_kept()
               ? ". --resume " + settings_.checkpoint_dir +
                     " goes on from the newest checkpoint; with --supervise it would "
                     "have done so by itself"
               : ". With --standby, or --checkpoint and --supervise, it would have"),
      now, out);
}

// Of the last step there is more to do than to have its parameters: they are evaluated, and their
// digest is told. Both come with the step, so that it is done again.
void Coordinator::note_committed() {
  if (!settings_.standby || kept_by_nobody_) return;
  const auto& resume = settings_.resume;
  if (!blocks_) {
    if (resume && resume->kept) committed_ = resume;
    return;
  }
  const bool last = step_ == settings_.steps;
  const Version version = last ? step_ - 1 : step_;
  const bool is_new = version > (resume ? resume->step : 0);
  if (!is_new && !(resume && resume->kept)) return;
  committed_ = ResumeFrom{.step = version,
                          .folder = {},
                          .tensors = model_.layout()->tensors(),
                          .settings = model_.settings(),
                          .noise = last ? noise_before_ : ledger_->noise(),
                          .kept = is_new ? KeptVersion{version, settings_.life} : resume->kept};
  for (const auto& [shard, blocks] : blocks_->on_shards()) committed_->keepers.insert(shard);
}

}  // namespace drover
