// SyncProtocol: all workers push in every step. A block's next version is made from the gradients
// that arrived before its step closed.
//
// With partial pulls a worker may be ahead of some blocks, since it does not wait for all of them.
// So a pull is answered with the newest versions, and a push for a later step is kept until the
// block reaches that step.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "shard/cutoff_rule.h"
#include "shard/early_pushes.h"
#include "shard/held_blocks.h"
#include "shard/sent_versions.h"
#include "shard/shard_protocol.h"
#include "shard/step_pushes.h"

namespace drover {

class SyncProtocol : public ShardProtocol {
 public:
  explicit SyncProtocol(ShardState& state);

  void on_joined(WorkerId worker) override;
  void on_lost(WorkerId worker) override;
  void on_members_changed(TimePoint now, Outbox& out) override;
  void on_decision(const Decision& decision, TimePoint now, Outbox& out) override;
  Status on_offer(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) override;
  void on_block(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) override;
  void on_pull(WorkerId worker, uint32_t received) override;
  void on_done(WorkerId worker, Version version, TimePoint now, Outbox& out) override;
  void on_release(const Release& release, TimePoint now, Outbox& out) override;
  std::optional<TimePoint> wake_at() const override;
  void on_time(TimePoint now, Outbox& out) override;
  void settle_all(TimePoint now, Outbox& out) override;
  size_t pending() const override;

 protected:
  bool serve_worker(HostedBlock& hosted, const Pull& pull, TimePoint now, Outbox& out) override;
  void on_step_closing(StepClosed& closed) override;

 private:
  // One block, and its pushes of the step that it collects for.
  struct Collected {
    HostedBlock& hosted;
    StepPushes pushes;
    EarlyPushes early = {};
    bool released = true;  // workers that are done with this step were released
  };

  CutoffRule::Collecting collecting(const Collected& each) const;
  bool may_close(const Collected& each, TimePoint now) const;
  Answer judge(const Collected& each, const Push& push) const;
  // Closes a block's steps as long as the rule allows, and takes early pushes for each next step.
  // Call after every change of the block.
  void settle(Collected& each, TimePoint now, Outbox& out);
  // Closes a block that has what it waits for, or freezes it until a worker says how to close it.
  void close_or_hold(Collected& each, TimePoint now, Outbox& out);
  void close(Collected& each, TimePoint now, Outbox& out, double scale = 1.0);
  void close_held(const Release& release, TimePoint now, Outbox& out);
  void release_abandoned(TimePoint now, Outbox& out);
  static Answer add_to(ShardBlock& block, const Push& push, ConstBuffer payload);
  void release_done(Collected& each);
  // Adds a gradient for the block's step or an earlier one, if it can be used. Returns whether the
  // block has to be settled.
  bool take(Collected& each, const Push& push, ConstBuffer payload, TimePoint now, Outbox& out);
  bool take_early(Collected& each, EarlyPush early, TimePoint now, Outbox& out);
  Status take_offer(Collected& each, const Push& push, TimePoint now, Outbox& out);
  void keep_early(Collected& each, const Push& push, ConstBuffer payload, Outbox& out);
  void drop_early(const Push& push, Outbox& out);
  void note_undecided(Step step, TimePoint now);
  void report_arrivals(Outbox& out);

  CutoffRule rule_;
  std::vector<Collected> blocks_;     // by HostedBlock::index
  std::vector<Step> least_push_;      // by worker: the lowest step that it may still push for
  std::optional<SentVersions> sent_;  // with partial pulls
  HeldBlocks held_;                   // of the open step
};

}  // namespace drover
